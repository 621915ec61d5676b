package import NetOptCore

/// What a run found: a value that the renderers turn into text and JSON.
package struct BenchReport: Sendable {
  /// Why a run ended.
  package enum StopReason: String, Sendable {
    /// It did all that was asked for.
    case completed
    /// The user stopped it.
    case interrupted
    /// No target could be used.
    case noTarget = "no-target"
    /// It took as many samples as a run may.
    case sampleLimit = "sample-limit"
  }

  /// What was found of a target in one block.
  package struct BlockResult: Sendable {
    /// How many requests there were.
    package let requests: Int
    /// How many of the fine ones came over a connection that had been used before.
    package let reused: Int
    /// From the moment at which a request was to be sent until its answer had ended, timeouts included. In a closed loop
    /// that moment is the one at which it was sent.
    package let response: Distribution
    /// From sending a request until its answer had ended, timeouts included.
    package let service: Distribution
    /// What the phases of the fine ones took.
    package let phases: [SamplePhase: Distribution]
    /// The share of requests that failed may lie here.
    package let failureInterval: ClosedRange<Double>
    /// How far what the requests took depends on those before them, by their ranks; a timeout is the longest.
    package let dependence: SerialDependence
    /// The samples, round by round.
    package let series: SampleSeries

    /// Sums up a series.
    package init(_ series: SampleSeries, order: OrderStatistics) {
      requests = series.count
      reused = series.reused
      let fine = series.fine
      let timeouts = series.counts[.timeout] ?? 0
      response = Distribution(fine.map { series.response($0) }, timeouts: timeouts, order: order)
      service = Distribution(fine.map { series.service($0) }, timeouts: timeouts, order: order)
      phases = Dictionary(
        uniqueKeysWithValues: SamplePhase.allCases.map { phase in
          (phase, Distribution(fine.map { series.phase(phase, $0) }, order: order))
        })
      failureInterval = WilsonInterval.interval(
        series.count - fine.count, of: series.count, confidence: order.confidence)
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

  /// What was found of a target.
  package struct TargetResult: Sendable {
    /// The target.
    package let target: BenchTarget
    /// Why it was not measured, or `nil` when it was.
    package var exclusion: Exclusion?
    /// How its connection was secured.
    package var tls: TLSReport?
    /// What the phases of its first request took.
    package var firstTimings: Timings?
    /// How many of its requests in all blocks were of each kind.
    package var counts: [SampleKind: Int] = [:]
    /// What was found in each block.
    package var blocks: [Block: BlockResult] = [:]

    /// How many of its requests failed.
    package var failures: Int { counts.filter { $0.key != .ok }.values.reduce(0, +) }
    /// Whether so many of them failed that the target is not to be called the best, however fast its answers are.
    package var failsOften: Bool {
      FailureLimit.isExceeded(failures: failures, of: counts.values.reduce(0, +))
    }
  }

  /// How the choice of the start-up probe looks in hindsight.
  package struct Picker: Hashable, Sendable {
    /// What the probe chose, or `nil` when it found nothing.
    package let chosen: IPAddress?
    /// The address with the lowest p50, or `nil` when none has one.
    package let best: IPAddress?
    /// How much longer the chosen one's p50 is, in microseconds.
    package let regret: Int64?
    /// Whether the chosen one shares the best one's rank.
    package let isTie: Bool
    /// How much the probe's ranking and the measured one agree, from -1 to 1; `nil` with fewer than two in both.
    package let kendallTau: Double?
  }

  /// The program, the machine and the moment.
  package let context: RunContext
  /// What was asked for.
  package let settings: BenchSettings
  /// Why the run ended.
  package var stopReason = StopReason.completed
  /// How long it took.
  package var elapsed = Duration.zero
  /// How many rounds of each block were completed.
  package var rounds: [Block: Int] = [:]
  /// How many addresses DNS answered with, when it was asked and did.
  package var dnsAnswers: Int?
  /// The version of HTTP that the targets answered with at first.
  package var version: HTTPVersion?
  /// What was found, in the order of the settings.
  package var targets: [TargetResult]
  /// What the start-up probe chose.
  package var choice: IPAddress?
  /// What the start-up probe found, the best first.
  package var probeRanking: [IPAddress] = []
  /// The processor time that this process used for the blocks.
  package var cpuTime = Duration.zero
  /// How the targets compare.
  package var comparisons: [Comparison] = []
  /// How the targets do against what was asked of them.
  package var verdicts: [Objective.Verdict] = []
  /// What the failover drill found; `nil` when there was none.
  package var drills: [Drill.Result]?
  /// The file with the samples, when there is one.
  package var samplesPath: String?
  /// What the reader has to know.
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
  /// Whether the run ended before it had done what was asked for.
  package var isPartial: Bool { stopReason == .interrupted || stopReason == .sampleLimit }

  /// Whether any request was answered.
  package var hasAnswers: Bool { targets.contains { ($0.counts[.ok] ?? 0) > 0 } }

  /// Whether any target was left out or failed.
  package var hasFailures: Bool { targets.contains { $0.exclusion != nil || $0.failures > 0 } }

  /// The block that targets are ranked by: the warm one, unless it was not run or was stopped before it had a p50.
  package var rankingBlock: Block {
    let candidates = [Block.warm, .cold].filter(settings.blocks.contains)
    return candidates.first { block in targets.contains { $0.median(block) != nil } } ?? candidates.first
      ?? .warm
  }

  /// The targets that were measured, by p50; those without one are last, in the order of the settings.
  package var ranking: [TargetResult] {
    let block = rankingBlock
    return targets.enumerated().filter { $0.element.exclusion == nil }.sorted { a, b in
      let (left, right) = (a.element.median(block) ?? .max, b.element.median(block) ?? .max)
      return (left, a.offset) < (right, b.offset)
    }.map(\.element)
  }

  /// What the others are compared with, when it was measured: the control, unless another one was asked for.
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

  /// The ranks of the targets that have a p50: those that cannot be told from the fastest of their rank share it.
  package var ranks: [(target: TargetResult, rank: Int, isShared: Bool)] {
    let ranked = ranking.filter { $0.median(rankingBlock) != nil }
    var ranks: [Int] = []
    var leader = 0
    for (index, result) in ranked.enumerated() {
      if index > 0 {
        let (a, b) = (result.target.id, ranked[leader].target.id)
        // Without a comparison nothing tells them apart.
        if comparisons.contains(where: { $0.a == a && $0.b == b && $0.metric == .p50 && isApart($0) }) {
          leader = index
        }
      }
      ranks.append(leader + 1)
    }
    return zip(ranked, ranks).map { result, rank in (result, rank, ranks.count { $0 == rank } > 1) }
  }

  /// Whether a comparison begins a new rank. One with the reference does when it is significant, so that table and ranks say the
  /// same; for the others each pair may have been asked about.
  private func isApart(_ comparison: Comparison) -> Bool {
    if comparison.b == reference?.target.id { return comparison.isSignificant }
    if comparison.a == reference?.target.id,
      let turned = comparisons.first(where: {
        $0.a == comparison.b && $0.b == comparison.a && $0.metric == .p50
      })
    {
      return turned.isSignificant
    }
    let count = ranking.count { $0.median(rankingBlock) != nil }
    return Comparisons.adjusted(comparison.p, amongTargets: count) < settings.alpha
      && abs(comparison.relative) > settings.minimumEffect
  }

  /// How the start-up probe chose, or `nil` when no address of the list was measured.
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
      guard let address = result.target.address, let place = probeRanking.firstIndex(of: address),
        let median = result.median(rankingBlock)
      else { return nil }
      return (Double(place), Double(median))
    }
    return Picker(
      chosen: choice, best: best?.target.address, regret: regret,
      isTie: chosen != nil && rank(chosen) == rank(best),
      kendallTau: both.count < 2 ? nil : KendallTau.b(both.map(\.0), both.map(\.1)))
  }

  /// How long after their moments the requests of an open loop were sent, failed ones included.
  package var lags: Distribution {
    guard settings.rate != nil else { return Distribution([]) }
    return Distribution(allLags, order: settings.order)
  }

  /// A request that is sent more than a millisecond after its moment is late.
  package static let lateAfter: Int64 = 1000

  /// How many requests of an open loop were late.
  package var lateStarts: Int { settings.rate == nil ? 0 : allLags.count { $0 > Self.lateAfter } }

  /// How many requests of an open loop there were.
  var openLoopRequests: Int { settings.rate == nil ? 0 : allLags.count }

  private var allLags: [Int64] {
    targets.flatMap { $0.blocks.values }.flatMap { block in
      block.series.kinds.indices.map { block.series.lag($0) }
    }
  }
}

extension BenchReport.TargetResult {
  /// The p50 of what its requests took in a block, in microseconds.
  package func median(_ block: Block) -> Int64? { blocks[block]?.response.value(.p50) }
}
