import FoundationEssentials
import NetOptCore

/// A run read from a file that `netopt bench --json` or `netopt merge` wrote.
package struct SavedRun: Sendable {
  /// The reason why a file is not a saved run: the path in the file and the broken rule.
  package struct Fault: Error, Hashable, Sendable, CustomStringConvertible {
    /// The path and the rule, as in `$.targets[0].id: is missing`.
    package let description: String
  }

  /// The maximum size of a saved run, in bytes (64 MiB).
  package static let maximumBytes = 64 << 20
  /// The maximum number of targets in a file or in a sum.
  static let maximumTargets = 20_000
  /// The maximum number of counters in all histograms of a file together. They take 256 MiB of memory. The
  /// limit is necessary because a few bytes of a file can encode a histogram with more than 17,000 counters.
  package static let maximumCounters = 32 << 20
  /// The range in which a file's numbers of requests and times in microseconds must be. Real values are far
  /// below the upper bound. Sums of values in this range do not overflow.
  static let numbers = 0...1 << 40

  /// The reason why the run did not measure a target.
  package struct Exclusion: Decodable, Hashable, Sendable {
    /// The code for programs, such as `refused`.
    package let code: String
    /// The reason in a few words, for people. The text is untrusted.
    package let reason: String
  }

  /// The distribution of one kind of time in a block, such as the response times.
  package struct Times: Sendable {
    /// The times of the successful requests.
    package var histogram: HDRHistogram
    /// The number of requests that timed out. The histogram does not contain them.
    package var timeouts: Int
    /// The measured median and the ends of its confidence interval, in microseconds. `nil` when the file has
    /// no complete median, and in a sum of runs.
    package var median: (value: Int64, low: Int64, high: Int64)?

    /// The number of requests that take part in the ranks: the values of the histogram and the timeouts.
    package var total: Int { Int(clamping: histogram.total) + timeouts }
  }

  /// The results of a target in one block.
  package struct BlockTimes: Sendable {
    /// The number of requests, failed requests included.
    package var requests: Int
    /// The time from the scheduled moment of a request to the end of its response.
    package var response: Times
    /// The time from the start of a request to the end of its response.
    package var service: Times
    /// The durations of each phase.
    package var phases: [SamplePhase: Times]
    /// The factor by which serial dependence raises the variance of the mean response time, compared with
    /// independent response times; at least 1. `nil` when the file does not contain the factor.
    package var dependence: Double?
  }

  /// The results of a target in all blocks.
  package struct Target: Sendable {
    /// The target's name: the address, or `dns`.
    package let id: String
    /// The target's kind.
    package let kind: BenchTarget.Kind
    /// The reason why the run did not measure the target; `nil` when the run measured it.
    package var exclusion: Exclusion?
    /// The target's rank, from 1; `nil` without a median, and in a sum of runs.
    package var rank: Int?
    /// The number of requests of each kind, in all blocks.
    package var counts: [SampleKind: Int]
    /// The results of each block.
    package var blocks: [Block: BlockTimes]
  }

  /// A comparison of two targets in the file. The names of the properties are those of the JSON members.
  package struct Comparison: Decodable, Hashable, Sendable {
    /// The name of the first target.
    package let a: String
    /// The name of the second target, with which `a` is compared.
    package let b: String
    /// The compared percentile, such as `p50`.
    package let metric: String
    /// The difference in microseconds; positive when `a` is slower.
    package let shift_us: Double
    /// The lower end of the difference's confidence interval, in microseconds.
    package let lo: Double
    /// The upper end of the difference's confidence interval, in microseconds.
    package let hi: Double
    /// The adjusted p value.
    package let p_adjusted: Double
    /// Whether the run called the difference significant.
    package let significant: Bool
  }

  /// The name of the run, or the names of all merged runs.
  package internal(set) var runs: [String]
  /// The requested URL without secrets. Files of earlier versions may contain secrets in the URL; the
  /// initializer removes them.
  package let url: String
  /// Whether the run stopped before its planned end. In a sum, whether one of the runs did.
  package internal(set) var isPartial: Bool
  /// The significance level of the run: the intervals in the file have the confidence 1 - `alpha`. `nil` when
  /// the file does not contain the level.
  package let alpha: Double?
  /// The targets.
  package var targets: [Target]
  /// The comparisons in the file.
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

  /// Reads a run from the content of a file.
  ///
  /// - Parameters:
  ///   - bytes: the content, which is untrusted.
  ///   - mostCounters: the maximum number of counters in all histograms together.
  /// - Throws: `Fault` when the content is not a valid saved run.
  package init(_ bytes: [UInt8], mostCounters: Int = SavedRun.maximumCounters) throws(Fault) {
    if let fault = SlowText.fault(ofJSON: bytes) { throw Fault(description: fault) }
    let file: SavedRunFile
    do {
      file = try JSONDecoder().decode(SavedRunFile.self, from: Data(bytes))
    } catch let error as DecodingError {
      throw Fault(error)
    } catch {
      throw Fault(description: "cannot decode the run: \(error)")
    }
    guard file.schema_version == 1 else {
      throw Fault(description: "$.schema_version: is \(file.schema_version); this version of netopt reads 1")
    }
    guard file.targets.count <= Self.maximumTargets else {
      throw Fault(description: "$.targets: has more than \(Self.maximumTargets) targets")
    }
    guard file.plan?.alpha.map({ $0 > 0 && $0 < 1 }) ?? true else {
      throw Fault(description: "$.plan.alpha: is not between 0 and 1")
    }
    var targets: [Target] = []
    var ids: Set<String> = []
    var room = mostCounters
    for (index, target) in file.targets.enumerated() {
      let path = "$.targets[\(index)]"
      guard let kind = BenchTarget.Kind(rawValue: target.kind) else {
        throw Fault(description: "\(path).kind: must be ip or dns, not \"\(target.kind)\"")
      }
      guard ids.insert(target.id).inserted else {
        throw Fault(description: "\(path).id: \"\(target.id)\" occurs twice")
      }
      guard target.rank.map({ $0 > 0 }) ?? true, target.counts.values.allSatisfy(Self.numbers.contains)
      else {
        throw Fault(description: "\(path): has an invalid count, or a rank below 1")
      }
      var blocks: [Block: BlockTimes] = [:]
      if let cold = target.cold { blocks[.cold] = try cold.times("\(path).cold", &room) }
      if let warm = target.warm { blocks[.warm] = try warm.times("\(path).warm", &room) }
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
        throw Fault(description: "$.comparisons[\(index)]: has an invalid time or probability")
      }
    }
    self.init(
      runs: file.runs ?? [file.run_id ?? "?"], url: HTTPURL.shown(given: file.request.url),
      isPartial: file.partial ?? false,
      alpha: file.plan?.alpha, targets: targets, comparisons: file.comparisons ?? [])
  }
}

/// The members of the JSON file that `SavedRun` reads. The names of the properties are those of the members.
private struct SavedRunFile: Decodable {
  struct Request: Decodable { let url: String }

  struct Plan: Decodable { let alpha: Double? }

  /// A percentile: `p` in percent, its value and its confidence interval in microseconds. A value or an end
  /// of the interval is `nil` when it lies among the timeouts.
  struct Entry: Decodable {
    let p: Double
    let value: Int64?
    let lo: Int64?
    let hi: Int64?
  }

  /// One kind of time in a block: `n` values without the timeouts, and in `hdr` their encoded histogram.
  struct Distribution: Decodable {
    let n: Int
    let timeouts: Int?
    let percentiles: [Entry]
    let hdr: String

    /// Checks and converts the distribution.
    ///
    /// - Parameters:
    ///   - path: the JSON path of the distribution, for errors.
    ///   - room: the number of counters that the file may still contain. The function subtracts the counters
    ///     of this distribution.
    func times(_ path: String, _ room: inout Int) throws(SavedRun.Fault) -> SavedRun.Times {
      let histogram: HDRHistogram
      do throws(HDRHistogram.Fault) {
        histogram = try HDRHistogram(encoded: hdr)
      } catch { throw SavedRun.Fault(description: "\(path).hdr: \(error)") }
      room -= histogram.counters
      guard room >= 0 else {
        throw SavedRun.Fault(
          description:
            "\(path).hdr: the histograms up to here have more counters than netopt reads; "
            + "measure fewer targets in a run")
      }
      guard n >= 0, UInt64(n) == histogram.total else {
        throw SavedRun.Fault(
          description: "\(path).n: is \(n), but the histogram has \(histogram.total) values")
      }
      let timeouts = timeouts ?? 0
      guard SavedRun.numbers.contains(timeouts), SavedRun.numbers.contains(n) else {
        throw SavedRun.Fault(description: "\(path).timeouts: is not a valid number of requests")
      }
      var times = SavedRun.Times(histogram: histogram, timeouts: timeouts)
      if let median = percentiles.first(where: { $0.p == 50 }), let value = median.value, let low = median.lo,
        let high = median.hi
      {
        guard low >= 0, low <= value, value <= high, SavedRun.numbers.contains(Int(high)) else {
          throw SavedRun.Fault(description: "\(path).percentiles: p50 is not within its interval")
        }
        times.median = (value, low, high)
      }
      return times
    }
  }

  /// The results of a target in one block: `n` requests, failed requests included.
  struct BlockEntry: Decodable {
    let n: Int
    let dependence: Double?
    let response_us: Distribution
    let service_us: Distribution
    let phases_us: [String: Distribution]

    /// Checks and converts the block.
    ///
    /// - Parameters:
    ///   - path: the JSON path of the block, for errors.
    ///   - room: as for `Distribution.times`.
    func times(_ path: String, _ room: inout Int) throws(SavedRun.Fault) -> SavedRun.BlockTimes {
      let response = try response_us.times("\(path).response_us", &room)
      guard SavedRun.numbers.contains(n), n >= response.total else {
        throw SavedRun.Fault(description: "\(path).n: is \(n), less than the number of responses")
      }
      var phases: [SamplePhase: SavedRun.Times] = [:]
      for phase in SamplePhase.allCases {
        phases[phase] = try phases_us[phase.rawValue]?.times(
          "\(path).phases_us.\(phase.rawValue)", &room)
      }
      guard dependence.map({ $0 >= 1 && $0 <= 1e6 }) ?? true else {
        throw SavedRun.Fault(description: "\(path).dependence: is not a factor of 1 or more")
      }
      return SavedRun.BlockTimes(
        requests: n, response: response, service: try service_us.times("\(path).service_us", &room),
        phases: phases, dependence: dependence)
    }
  }

  /// The results of a target. `cold` and `warm` are `nil` when the run has no results in this block.
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
  /// The name of the run. Only files of `netopt bench` contain it.
  let run_id: String?
  /// The names of the merged runs. Only files of `netopt merge` contain them.
  let runs: [String]?
  let partial: Bool?
  let request: Request
  let plan: Plan?
  let targets: [Target]
  let comparisons: [SavedRun.Comparison]?
}

extension SavedRun.Fault {
  /// Says where in the file the decoder stopped, and why.
  fileprivate init(_ error: DecodingError) {
    switch error {
    case .keyNotFound(let key, let context):
      self.init(description: "\((context.codingPath + [key]).jsonPath): is missing")
    case .valueNotFound(_, let context): self.init(description: "\(context.codingPath.jsonPath): is null")
    case .typeMismatch(let type, let context):
      self.init(description: "\(context.codingPath.jsonPath): is not of type \(type)")
    case .dataCorrupted(let context):
      self.init(description: "\(context.codingPath.jsonPath): is not the JSON of a saved run")
    @unknown default: self.init(description: "the file is not a saved run")
    }
  }
}
