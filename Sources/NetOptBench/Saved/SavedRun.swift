import FoundationEssentials
import NetOptCore

/// A run as `netopt bench --json` or `netopt merge` left it in a file: what others can be compared with and added to.
package struct SavedRun: Sendable {
  /// Why a file is no saved run: the place in it and the rule.
  package struct Fault: Error, Hashable, Sendable, CustomStringConvertible {
    /// `$.targets[0].id: is missing`.
    package let description: String
  }

  /// The most bytes that a saved run may have.
  package static let maximumBytes = 64 << 20
  /// The most targets.
  static let maximumTargets = 20_000
  /// The most counters that the histograms of a file may have, which is 256 MiB of them: a few bytes of a file can stand for a
  /// histogram of 20,000.
  package static let maximumCounters = 32 << 20
  /// What numbers of requests and times may be: so large that none is refused, and small enough to be added up.
  static let numbers = 0...1 << 40

  /// How a target was left out.
  package struct Exclusion: Decodable, Hashable, Sendable {
    /// The reason's code.
    package let code: String
    /// The reason for people.
    package let reason: String
  }

  /// What requests took.
  package struct Times: Sendable {
    /// The values.
    package var histogram: HDRHistogram
    /// How many requests timed out beside them.
    package var timeouts: Int
    /// The median as it was measured, with its interval; `nil` without, and in a merged run.
    package var median: (value: Int64, low: Int64, high: Int64)?

    /// How many requests take part in the ranks.
    package var total: Int { Int(clamping: histogram.total) + timeouts }
  }

  /// A target in a block.
  package struct BlockTimes: Sendable {
    /// How many requests there were, failed ones included.
    package var requests: Int
    /// From the moment of a request to its end.
    package var response: Times
    /// From sending to the end.
    package var service: Times
    /// The phases.
    package var phases: [SamplePhase: Times]
    /// By how much the variance of a mean of the responses is larger than that of as many independent ones; `nil` when the run
    /// does not say.
    package var dependence: Double?
  }

  /// A target.
  package struct Target: Sendable {
    /// Its name: the address, or `dns`.
    package let id: String
    /// What kind it is.
    package let kind: BenchTarget.Kind
    /// Why it was not measured.
    package var exclusion: Exclusion?
    /// Its rank; `nil` without a median.
    package var rank: Int?
    /// How many requests were of each kind.
    package var counts: [SampleKind: Int]
    /// What was measured in each block.
    package var blocks: [Block: BlockTimes]
  }

  /// A comparison that the run made.
  package struct Comparison: Decodable, Hashable, Sendable {
    /// The target.
    package let a: String
    /// What it was compared with.
    package let b: String
    /// At which percentile.
    package let metric: String
    /// By how many microseconds a took longer.
    package let shift_us: Double
    /// The interval.
    package let lo: Double
    /// Its other end.
    package let hi: Double
    /// The adjusted p value.
    package let p_adjusted: Double
    /// Whether it is significant.
    package let significant: Bool
  }

  /// The names of the runs: one, or those that were merged.
  package internal(set) var runs: [String]
  /// What was requested, without secrets: runs of earlier versions have them.
  package let url: String
  /// Whether it ended before its time.
  package internal(set) var isPartial: Bool
  /// The level of its intervals: how often they may miss; `nil` when it does not say.
  package let alpha: Double?
  /// The targets.
  package var targets: [Target]
  /// What it compared.
  package let comparisons: [Comparison]

  /// Makes a run.
  init(
    runs: [String], url: String, isPartial: Bool, alpha: Double? = nil, targets: [Target],
    comparisons: [Comparison]
  ) {
    self.alpha = alpha
    self.runs = runs
    self.url = url
    self.isPartial = isPartial
    self.targets = targets
    self.comparisons = comparisons
  }

  /// Reads a file's content.
  ///
  /// - Parameter mostCounters: how many counters the histograms may have together.
  package init(_ bytes: [UInt8], mostCounters: Int = SavedRun.maximumCounters) throws(Fault) {
    let file: SavedRunFile
    do {
      file = try JSONDecoder().decode(SavedRunFile.self, from: Data(bytes))
    } catch let error as DecodingError {
      throw Fault(error)
    } catch {
      throw Fault(description: "it cannot be read: \(error)")
    }
    guard file.schema_version == 1 else {
      throw Fault(description: "$.schema_version: is \(file.schema_version); this netopt reads 1")
    }
    guard file.targets.count <= Self.maximumTargets else {
      throw Fault(description: "$.targets: has more than \(Self.maximumTargets) targets")
    }
    guard file.plan?.alpha.map({ $0 > 0 && $0 < 1 }) ?? true else {
      throw Fault(description: "$.plan.alpha: is no level between 0 and 1")
    }
    var targets: [Target] = []
    var ids: Set<String> = []
    var room = mostCounters
    for (index, target) in file.targets.enumerated() {
      let place = "$.targets[\(index)]"
      guard let kind = BenchTarget.Kind(rawValue: target.kind) else {
        throw Fault(description: "\(place).kind: is ip or dns, not \"\(target.kind)\"")
      }
      guard ids.insert(target.id).inserted else {
        throw Fault(description: "\(place).id: \"\(target.id)\" is there twice")
      }
      guard target.rank.map({ $0 > 0 }) ?? true, target.counts.values.allSatisfy(Self.numbers.contains)
      else {
        throw Fault(description: "\(place): has a count that is none, or a rank below 1")
      }
      var blocks: [Block: BlockTimes] = [:]
      if let cold = target.cold { blocks[.cold] = try cold.times("\(place).cold", &room) }
      if let warm = target.warm { blocks[.warm] = try warm.times("\(place).warm", &room) }
      let counts = target.counts.compactMap { key, count in SampleKind(rawValue: key).map { ($0, count) } }
      targets.append(
        Target(
          id: target.id, kind: kind, exclusion: target.excluded, rank: target.rank,
          counts: Dictionary(counts, uniquingKeysWith: +), blocks: blocks))
    }
    let limit = Double(Self.numbers.upperBound)
    for (index, found) in (file.comparisons ?? []).enumerated() {
      guard [found.shift_us, found.lo, found.hi].allSatisfy({ abs($0) <= limit }),
        (0...1).contains(found.p_adjusted)
      else {
        throw Fault(description: "$.comparisons[\(index)]: has a number that is no time or probability")
      }
    }
    self.init(
      runs: file.runs ?? [file.run_id ?? "?"], url: HTTPURL.shown(given: file.request.url),
      isPartial: file.partial ?? false,
      alpha: file.plan?.alpha, targets: targets, comparisons: file.comparisons ?? [])
  }
}

/// The parts of the file that are read.
private struct SavedRunFile: Decodable {
  struct Request: Decodable { let url: String }

  struct Plan: Decodable { let alpha: Double? }

  struct Entry: Decodable {
    let p: Double
    let value: Int64?
    let lo: Int64?
    let hi: Int64?
  }

  struct Distribution: Decodable {
    let n: Int
    let timeouts: Int?
    let percentiles: [Entry]
    let hdr: String

    /// - Parameter room: how many counters the rest of the file may have.
    func times(_ place: String, _ room: inout Int) throws(SavedRun.Fault) -> SavedRun.Times {
      let histogram: HDRHistogram
      do throws(HDRHistogram.Fault) {
        histogram = try HDRHistogram(encoded: hdr)
      } catch { throw SavedRun.Fault(description: "\(place).hdr: \(error)") }
      room -= histogram.counters
      guard room >= 0 else {
        throw SavedRun.Fault(
          description:
            "\(place).hdr: the histograms up to here have more counters than are read; "
            + "measure fewer targets in a run")
      }
      guard n >= 0, UInt64(n) == histogram.total else {
        throw SavedRun.Fault(
          description: "\(place).n: is \(n), and the histogram has \(histogram.total) values")
      }
      let timeouts = timeouts ?? 0
      guard SavedRun.numbers.contains(timeouts), SavedRun.numbers.contains(n) else {
        throw SavedRun.Fault(description: "\(place).timeouts: is no number of requests")
      }
      var times = SavedRun.Times(histogram: histogram, timeouts: timeouts)
      if let median = percentiles.first(where: { $0.p == 50 }), let value = median.value, let low = median.lo,
        let high = median.hi
      {
        guard low >= 0, low <= value, value <= high, SavedRun.numbers.contains(Int(high)) else {
          throw SavedRun.Fault(description: "\(place).percentiles: p50 is not within its interval")
        }
        times.median = (value, low, high)
      }
      return times
    }
  }

  struct BlockEntry: Decodable {
    let n: Int
    let dependence: Double?
    let response_us: Distribution
    let service_us: Distribution
    let phases_us: [String: Distribution]

    func times(_ place: String, _ room: inout Int) throws(SavedRun.Fault) -> SavedRun.BlockTimes {
      let response = try response_us.times("\(place).response_us", &room)
      guard SavedRun.numbers.contains(n), n >= response.total else {
        throw SavedRun.Fault(description: "\(place).n: is \(n), less than there are responses")
      }
      var phases: [SamplePhase: SavedRun.Times] = [:]
      for phase in SamplePhase.allCases {
        phases[phase] = try phases_us[phase.rawValue]?.times(
          "\(place).phases_us.\(phase.rawValue)", &room)
      }
      guard dependence.map({ $0 >= 1 && $0 <= 1e6 }) ?? true else {
        throw SavedRun.Fault(description: "\(place).dependence: is no factor of 1 or more")
      }
      return SavedRun.BlockTimes(
        requests: n, response: response, service: try service_us.times("\(place).service_us", &room),
        phases: phases, dependence: dependence)
    }
  }

  struct Target: Decodable {
    let id: String
    let kind: String
    let excluded: SavedRun.Exclusion?
    let rank: Int?
    let counts: [String: Int]
    let cold: BlockEntry?
    let warm: BlockEntry?
  }

  let schema_version: Int
  let run_id: String?
  let runs: [String]?
  let partial: Bool?
  let request: Request
  let plan: Plan?
  let targets: [Target]
  let comparisons: [SavedRun.Comparison]?
}

extension SavedRun.Fault {
  /// Says where the decoder stopped, and why.
  fileprivate init(_ error: DecodingError) {
    func place(_ path: [any CodingKey]) -> String {
      path.reduce("$") { $0 + ($1.intValue.map { "[\($0)]" } ?? ".\($1.stringValue)") }
    }
    switch error {
    case .keyNotFound(let key, let context):
      self.init(description: "\(place(context.codingPath + [key])): is missing")
    case .valueNotFound(_, let context): self.init(description: "\(place(context.codingPath)): is null")
    case .typeMismatch(let type, let context):
      self.init(description: "\(place(context.codingPath)): is no \(type)")
    case .dataCorrupted(let context):
      self.init(description: "\(place(context.codingPath)): is no JSON that a run is written in")
    @unknown default: self.init(description: "it is no saved run")
    }
  }
}
