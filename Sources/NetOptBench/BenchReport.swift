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
    /// What the requests took.
    package let response: Distribution
    /// What the phases of the fine ones took.
    package let phases: [SamplePhase: Distribution]

    /// Sums up a series.
    package init(_ series: SampleSeries) {
      requests = series.count
      reused = series.reused
      response = series.response
      phases = series.byPhase
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
    /// How many of its requests in all blocks were of each kind.
    package var counts: [SampleKind: Int] = [:]
    /// What was found in each block.
    package var blocks: [Block: BlockResult] = [:]

    /// How many of its requests failed.
    package var failures: Int { counts.filter { $0.key != .ok }.values.reduce(0, +) }
  }

  /// How the choice of the start-up probe looks in hindsight.
  package struct Picker: Hashable, Sendable {
    /// What the probe chose, or `nil` when it found nothing.
    package let chosen: IPAddress?
    /// The address with the lowest p50, or `nil` when none has one.
    package let best: IPAddress?
    /// How much longer the chosen one's p50 is, in microseconds.
    package let regret: Int64?
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

  /// The control, when it was measured.
  package var reference: TargetResult? { targets.first { $0.target.kind == .dns && $0.exclusion == nil } }

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
    return Picker(chosen: choice, best: best?.target.address, regret: regret)
  }
}

extension BenchReport.TargetResult {
  /// The p50 of what its requests took in a block, in microseconds.
  package func median(_ block: Block) -> Int64? { blocks[block]?.response.value(50) }
}
