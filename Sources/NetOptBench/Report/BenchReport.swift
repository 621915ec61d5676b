package import NetOptCore

/// The results of a run. The renderers turn this value into text, JSON and HTML.
package struct BenchReport: Sendable {
  /// The reason why a run ended.
  package enum StopReason: String, Sendable {
    /// The run performed all its blocks.
    case completed
    /// The user stopped the run.
    case interrupted
    /// The run excluded every target.
    case noTarget = "no-target"
    /// The run reached the maximum number of samples.
    case sampleLimit = "sample-limit"
  }

  /// The results of a target in one block.
  package struct BlockResult: Sendable {
    /// The number of requests in complete rounds, failed requests included.
    package let requests: Int
    /// The number of successful requests whose connection an earlier request had used.
    package let reused: Int
    /// The distribution of the response times. A response time counts from the scheduled moment of the
    /// request to the end of its response. A closed loop has no schedule, so there it counts from the start
    /// of the request. The values come from the successful requests. The requests that timed out are the
    /// timeouts of the distribution.
    package let response: Distribution
    /// The distribution of the service times. A service time counts from the start of the request to the end
    /// of its response. The values and the timeouts come from the same requests as in `response`.
    package let service: Distribution
    /// For each phase, the distribution of its duration in the successful requests.
    package let phases: [SamplePhase: Distribution]
    /// Wilson's confidence interval for the share of failed requests, within 0 to 1.
    package let failureInterval: ClosedRange<Double>
    /// How much each response time depends on the response times before it, computed from their ranks. A
    /// timeout has the highest rank. Requests that failed for another reason are left out.
    package let dependence: SerialDependence
    /// The samples, one for each complete round.
    package let series: SampleSeries

    /// Summarises the samples of a target in one block.
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
    /// The TLS properties of the connection of the target's first request, or of its repetition. The run
    /// sends the first request before the blocks, and repeats it once when it fails. `nil` without TLS, and
    /// when the last of these requests got no response.
    package var tls: TLSReport?
    /// The durations of the phases of the target's first request, or of its repetition; `nil` when neither
    /// succeeded.
    package var firstTimings: Timings?
    /// The number of samples of each kind, in the complete rounds of all blocks.
    package var counts: [SampleKind: Int] = [:]
    /// The results of each block.
    package var blocks: [Block: BlockResult] = [:]

    /// The number of failed requests in the complete rounds of all blocks.
    package var failures: Int { counts.filter { $0.key != .ok }.values.reduce(0, +) }
    /// Whether significantly more requests failed than `FailureLimit` tolerates. If so, reports must not call
    /// the target the best, however fast its responses are.
    package var failsOften: Bool {
      FailureLimit.isExceeded(failures: failures, of: counts.values.reduce(0, +))
    }
  }

  /// The choice of the start-up probe, compared with the measured times.
  package struct Picker: Hashable, Sendable {
    /// The address that the probe chose, or `nil` when the probe found no endpoint.
    package let chosen: IPAddress?
    /// The measured address with the lowest p50 in the ranking block; `nil` when no address has a p50.
    package let best: IPAddress?
    /// The cost of the choice: the p50 of the chosen address minus the p50 of the best address, in
    /// microseconds. `nil` when one of the two values is missing.
    package let regret: Int64?
    /// Whether the chosen address shares the rank of the best address, or is the best address itself.
    package let isTie: Bool
    /// The agreement between the probe's ranking and the ranking by p50 (Kendall's τ-b), from -1 to 1. `nil`
    /// when fewer than two addresses are in both rankings, or when all their p50 are equal.
    package let kendallTau: Double?
  }

  /// The program, the machine, the command line and the start time.
  package let context: RunContext
  /// The settings of the run.
  package let settings: BenchSettings
  /// The reason why the run ended.
  package var stopReason = StopReason.completed
  /// The duration of the run. It includes the start-up probe, the first requests, and the DNS lookups before
  /// and after the blocks.
  package var elapsed = Duration.zero
  /// The number of complete rounds in each block.
  package var rounds: [Block: Int] = [:]
  /// The number of addresses that DNS answered before the blocks; `nil` without a DNS target or when the
  /// lookup failed.
  package var dnsAnswers: Int?
  /// The HTTP version of the response to the first request of a target. The first target that was not
  /// excluded counts; `nil` when there is none.
  package var version: HTTPVersion?
  /// The results of all targets, excluded targets included, in the order of the settings.
  package var targets: [TargetResult]
  /// The address that the start-up probe chose; `nil` when it chose none, failed or did not run.
  package var choice: IPAddress?
  /// The addresses of the endpoints that the start-up probe found, the best first.
  package var probeRanking: [IPAddress] = []
  /// The processor time that this process used from the start of the first block to the end of the last
  /// block. Zero when the program does not measure it.
  package var cpuTime = Duration.zero
  /// The comparisons of pairs of targets at p50, p95 and p99 (`Comparisons`).
  package var comparisons: [Comparison] = []
  /// For each objective, whether each measured target meets it.
  package var verdicts: [Objective.Verdict] = []
  /// The results of the failover drill, one for each dead address; `nil` when the drill did not run.
  package var drills: [Drill.Result]?
  /// The path of the file to which the samples were written; `nil` when there is no such file.
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
  /// Whether the run stopped before the end of its last block: it was interrupted or reached the sample
  /// limit.
  package var isPartial: Bool { stopReason == .interrupted || stopReason == .sampleLimit }

  /// Whether any request in a complete round succeeded.
  package var hasUsableAnswers: Bool { targets.contains { ($0.counts[.ok] ?? 0) > 0 } }

  /// Whether any target was excluded, or has failed requests in complete rounds.
  package var hasFailures: Bool { targets.contains { $0.exclusion != nil || $0.failures > 0 } }

  /// The block whose response times determine the ranking: the warm block if a target has a p50 there,
  /// otherwise the cold block if a target has a p50 there. If no target has a p50 in any block, it is the
  /// warm block, unless the run has only a cold block.
  package var rankingBlock: Block {
    let candidates = [Block.warm, .cold].filter(settings.blocks.contains)
    return candidates.first { block in targets.contains { $0.median(block) != nil } } ?? candidates.first
      ?? .warm
  }

  /// The measured targets, the lowest p50 in the ranking block first. Targets without a p50 come last, in the
  /// order of the settings.
  package var ranking: [TargetResult] {
    let block = rankingBlock
    return targets.enumerated().filter { $0.element.exclusion == nil }.sorted { a, b in
      let (left, right) = (a.element.median(block) ?? .max, b.element.median(block) ?? .max)
      return (left, a.offset) < (right, b.offset)
    }.map(\.element)
  }

  /// The target with which all other targets are compared. It is the DNS target, unless the settings name
  /// another target. `nil` when the run did not measure it.
  package var reference: TargetResult? {
    targets.first { result in
      guard result.exclusion == nil else { return false }
      return settings.reference.map { $0 == result.target.id } ?? (result.target.kind == .dns)
    }
  }

  /// The comparison of a target with the reference.
  ///
  /// - Parameter target: the target's name (`BenchTarget.id`).
  /// - Returns: `nil` without a reference, or when the two targets were not compared at this percentile.
  package func comparison(of target: String, at percentile: Percentile = .p50) -> Comparison? {
    guard let reference else { return nil }
    return comparisons.first { $0.a == target && $0.b == reference.target.id && $0.metric == percentile }
  }

  /// The ranks of the targets with a p50, from 1, in the order of the ranking. A new rank begins with a
  /// target that differs significantly from the first target of the rank before. The following targets share
  /// the new rank as long as they do not differ significantly from its first target. The number of a rank is
  /// the place of its first target in the ranking. `isShared` says whether other targets have the same rank.
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

  /// Whether a comparison shows that its target `a` begins a new rank.
  ///
  /// When one of the two targets is the reference, the table of the report shows this comparison. A new rank
  /// then begins exactly when the table shows a significant difference. In every other case, the p value is
  /// adjusted for the number of all pairs of targets, because any pair could have been compared if the
  /// ranking had come out differently.
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

  /// Compares the choice of the start-up probe with the measured times; `nil` when the run had no address of
  /// the list as a target.
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

  /// The distribution of the lags of an open loop: the delays between the scheduled moments and the starts of
  /// the requests, failed requests included. Empty for a closed loop.
  package var lags: Distribution {
    guard settings.rate != nil else { return Distribution([]) }
    return Distribution(allLags, order: settings.order)
  }

  /// The delay in microseconds after which a request counts as late (1 ms).
  package static let lateAfter: Int64 = 1000

  /// The number of requests that an open loop started more than `lateAfter` late; 0 for a closed loop.
  package var lateStarts: Int { settings.rate == nil ? 0 : allLags.count { $0 > Self.lateAfter } }

  /// The number of requests of an open loop in complete rounds; 0 for a closed loop.
  var openLoopRequests: Int { settings.rate == nil ? 0 : allLags.count }

  /// The lag of each request in the complete rounds of all blocks, in microseconds.
  private var allLags: [Int64] {
    targets.flatMap { $0.blocks.values }.flatMap { block in
      block.series.kinds.indices.map { block.series.lag($0) }
    }
  }
}

extension BenchReport.TargetResult {
  /// The p50 of the target's response times in a block, in microseconds. `nil` when there are too few samples
  /// for it, and when its rank belongs to a timeout.
  package func median(_ block: Block) -> Int64? { blocks[block]?.response.value(.p50) }
}
