package import NetOptCore

/// The results of a run. The renderers turn this value into text, JSON and HTML.
package struct BenchReport: Sendable {
  /// The reason why a run ended.
  package enum StopReason: String, Sendable {
    /// The run did everything that was requested.
    case completed
    /// The user stopped the run.
    case interrupted
    /// No target was usable.
    case noTarget = "no-target"
    /// The run reached the maximum number of samples.
    case sampleLimit = "sample-limit"
  }

  /// The results of a target in one block.
  package struct BlockResult: Sendable {
    /// The number of requests.
    package let requests: Int
    /// The number of successful requests over a connection that an earlier request had used.
    package let reused: Int
    /// The time from the scheduled moment of a request to the end of its response, timeouts included. In a
    /// closed loop the scheduled moment is the moment of sending.
    package let response: Distribution
    /// The time from sending a request to the end of its response, timeouts included.
    package let service: Distribution
    /// The durations of the phases of the successful requests.
    package let phases: [SamplePhase: Distribution]
    /// The confidence interval of the share of failed requests.
    package let failureInterval: ClosedRange<Double>
    /// The serial dependence of the response times, computed from their ranks. A timeout ranks as the longest
    /// response; other failures do not count.
    package let dependence: SerialDependence
    /// The samples, in the order of the rounds.
    package let series: SampleSeries

    /// Summarises a series.
    package init(_ series: SampleSeries, order: OrderStatistics) {
      requests = series.count
      reused = series.reused
      let successes = series.successes
      let timeouts = series.counts[.timeout] ?? 0
      response = Distribution(successes.map { series.response($0) }, timeouts: timeouts, order: order)
      service = Distribution(successes.map { series.service($0) }, timeouts: timeouts, order: order)
      phases = Dictionary(
        uniqueKeysWithValues: SamplePhase.allCases.map { phase in
          (phase, Distribution(successes.map { series.phase(phase, $0) }, order: order))
        })
      failureInterval = WilsonInterval.interval(
        series.count - successes.count, of: series.count, confidence: order.confidence)
      let largest = Double(series.largest)
      dependence = SerialDependence(
        MidRanks(
          series.kinds.indices.compactMap { index in
            switch series.kinds[index] {
            case .ok: Double(series.response(index))
            case .timeout: largest + 1
            default: nil
            }
          }
        ).ranks)
      self.series = series
    }
  }

  /// The results of a target.
  package struct TargetResult: Sendable {
    /// The target.
    package let target: BenchTarget
    /// The reason why the run did not measure the target, or `nil` when the run measured it.
    package var exclusion: Exclusion?
    /// The TLS properties of the target's connection.
    package var tls: TLSReport?
    /// The durations of the phases of the target's first request; `nil` when that request failed.
    package var firstTimings: Timings?
    /// The number of requests of each kind, in all blocks.
    package var counts: [SampleKind: Int] = [:]
    /// The results of each block.
    package var blocks: [Block: BlockResult] = [:]

    /// The number of failed requests.
    package var failures: Int { counts.filter { $0.key != .ok }.values.reduce(0, +) }
    /// Whether so many requests failed that reports must not call the target the best, however fast its
    /// responses are.
    package var failsOften: Bool {
      FailureLimit.isExceeded(failures: failures, of: counts.values.reduce(0, +))
    }
  }

  /// An assessment of the start-up probe's choice by the measured times.
  package struct Picker: Hashable, Sendable {
    /// The address that the probe chose, or `nil` when the probe found no endpoint.
    package let chosen: IPAddress?
    /// The address with the lowest p50, or `nil` when no address has a p50.
    package let best: IPAddress?
    /// The p50 of the chosen address minus the p50 of the best address, in microseconds; `nil` when either is
    /// missing.
    package let regret: Int64?
    /// Whether the chosen address shares the rank of the best address.
    package let isTie: Bool
    /// The agreement of the probe's ranking with the measured ranking (Kendall's τ-b), from -1 to 1; `nil`
    /// when fewer than two addresses are in both rankings.
    package let kendallTau: Double?
  }

  /// The program, the machine and the start time.
  package let context: RunContext
  /// The settings of the run.
  package let settings: BenchSettings
  /// The reason why the run ended.
  package var stopReason = StopReason.completed
  /// The duration of the run.
  package var elapsed = Duration.zero
  /// The number of completed rounds of each block.
  package var rounds: [Block: Int] = [:]
  /// The number of addresses in the DNS answer; `nil` without a DNS target or without an answer.
  package var dnsAnswers: Int?
  /// The HTTP version of the first request to the first usable target.
  package var version: HTTPVersion?
  /// The results of all targets, in the order of the settings.
  package var targets: [TargetResult]
  /// The address that the start-up probe chose.
  package var choice: IPAddress?
  /// The addresses that the start-up probe found, the best first.
  package var probeRanking: [IPAddress] = []
  /// The processor time that this process used for the blocks.
  package var cpuTime = Duration.zero
  /// The comparisons between targets.
  package var comparisons: [Comparison] = []
  /// The results of the targets for the objectives.
  package var verdicts: [Objective.Verdict] = []
  /// The results of the failover drill; `nil` when the drill did not run.
  package var drills: [Drill.Result]?
  /// The path of the file with the samples, when there is one.
  package var samplesPath: String?
  /// The warnings for the reader of the report.
  package var warnings: [BenchWarning]

  /// Makes the report of a run that has not begun.
  package init(_ settings: BenchSettings, _ context: RunContext, warnings: [BenchWarning] = []) {
    self.context = context
    self.settings = settings
    self.warnings = warnings
    targets = settings.targets.map { TargetResult(target: $0) }
  }
}

extension BenchReport {
  /// Whether the run was interrupted or reached the sample limit.
  package var isPartial: Bool { stopReason == .interrupted || stopReason == .sampleLimit }

  /// Whether any request succeeded.
  package var hasAnswers: Bool { targets.contains { ($0.counts[.ok] ?? 0) > 0 } }

  /// Whether any target was excluded or has failed requests.
  package var hasFailures: Bool { targets.contains { $0.exclusion != nil || $0.failures > 0 } }

  /// The block that determines the ranking: the warm block, or the cold block when the run has no warm block
  /// or only the cold block has a p50.
  package var rankingBlock: Block {
    let candidates = [Block.warm, .cold].filter(settings.blocks.contains)
    return candidates.first { block in targets.contains { $0.median(block) != nil } } ?? candidates.first
      ?? .warm
  }

  /// The measured targets by p50. Targets without a p50 come last, in the order of the settings.
  package var ranking: [TargetResult] {
    let block = rankingBlock
    return targets.enumerated().filter { $0.element.exclusion == nil }.sorted { a, b in
      let (left, right) = (a.element.median(block) ?? .max, b.element.median(block) ?? .max)
      return (left, a.offset) < (right, b.offset)
    }.map(\.element)
  }

  /// The target that all others are compared with, when the run measured it. It is the DNS target, unless the
  /// settings name another reference.
  package var reference: TargetResult? {
    targets.first { result in
      guard result.exclusion == nil else { return false }
      return settings.reference.map { $0 == result.target.id } ?? (result.target.kind == .dns)
    }
  }

  /// The comparison of a target with the reference.
  package func comparison(of target: String, at percentile: Percentile = .p50) -> Comparison? {
    guard let reference else { return nil }
    return comparisons.first { $0.a == target && $0.b == reference.target.id && $0.metric == percentile }
  }

  /// The ranks of the targets with a p50. A target without a significant difference from the fastest target
  /// of a rank shares that rank.
  package var ranks: [(target: TargetResult, rank: Int, isShared: Bool)] {
    let ranked = ranking.filter { $0.median(rankingBlock) != nil }
    var ranks: [Int] = []
    var leader = 0
    for (index, result) in ranked.enumerated() {
      if index > 0 {
        let (a, b) = (result.target.id, ranked[leader].target.id)
        // Without a comparison the two targets share a rank.
        if comparisons.contains(where: { $0.a == a && $0.b == b && $0.metric == .p50 && beginsRank($0) }) {
          leader = index
        }
      }
      ranks.append(leader + 1)
    }
    return zip(ranked, ranks).map { result, rank in (result, rank, ranks.count { $0 == rank } > 1) }
  }

  /// Whether a comparison begins a new rank. A comparison with the reference does so when it is significant,
  /// so that the table and the ranks agree. For other comparisons the p value is adjusted for all pairs of
  /// targets, because any pair could have been compared.
  private func beginsRank(_ comparison: Comparison) -> Bool {
    if comparison.b == reference?.target.id { return comparison.isSignificant }
    if comparison.a == reference?.target.id,
      let reversed = comparisons.first(where: {
        $0.a == comparison.b && $0.b == comparison.a && $0.metric == .p50
      })
    {
      return reversed.isSignificant
    }
    let count = ranking.count { $0.median(rankingBlock) != nil }
    return Comparisons.adjusted(comparison.p, amongTargets: count) < settings.alpha
      && abs(comparison.relative) > settings.minimumEffect
  }

  /// The assessment of the start-up probe's choice, or `nil` when the run had no address of the list as a
  /// target.
  package var picker: Picker? {
    guard targets.contains(where: { $0.target.kind == .ip }) else { return nil }
    let listed = ranking.filter { $0.target.kind == .ip && $0.median(rankingBlock) != nil }
    let best = listed.first
    let chosen = listed.first { $0.target.address == choice }
    var regret: Int64?
    if let best = best?.median(rankingBlock), let chosen = chosen?.median(rankingBlock) {
      regret = chosen - best
    }
    let ranks = ranks
    func rank(_ result: TargetResult?) -> Int? { ranks.first { $0.target.target == result?.target }?.rank }
    let both = listed.compactMap { result -> (Double, Double)? in
      guard let address = result.target.address, let index = probeRanking.firstIndex(of: address),
        let median = result.median(rankingBlock)
      else { return nil }
      return (Double(index), Double(median))
    }
    return Picker(
      chosen: choice, best: best?.target.address, regret: regret,
      isTie: chosen != nil && rank(chosen) == rank(best),
      kendallTau: both.count < 2 ? nil : KendallTau.b(both.map(\.0), both.map(\.1)))
  }

  /// The delays between the scheduled moments and the sending of the requests in an open loop, failed
  /// requests included.
  package var lags: Distribution {
    guard settings.rate != nil else { return Distribution([]) }
    return Distribution(allLags, order: settings.order)
  }

  /// A request counts as late when its delay exceeds this number of microseconds (1 ms).
  package static let lateAfter: Int64 = 1000

  /// The number of late requests in an open loop.
  package var lateStarts: Int { settings.rate == nil ? 0 : allLags.count { $0 > Self.lateAfter } }

  /// The number of requests in an open loop.
  var openLoopRequests: Int { settings.rate == nil ? 0 : allLags.count }

  private var allLags: [Int64] {
    targets.flatMap { $0.blocks.values }.flatMap { block in
      block.series.kinds.indices.map { block.series.lag($0) }
    }
  }
}

extension BenchReport.TargetResult {
  /// The p50 of the target's response times in a block, in microseconds.
  package func median(_ block: Block) -> Int64? { blocks[block]?.response.value(.p50) }
}
