import NetOptCore
import NetOptLocking

/// Collects the samples of a block. Several rounds may run at the same time; only complete rounds count. Safe
/// to use from any task.
final class BlockRecord: Sendable {
  /// A round of the block.
  struct Round: Sendable {
    /// The round's number, from 0.
    let number: Int
    /// The indices of the targets, in the order of the round.
    let order: [Int]
  }

  private struct State {
    var plan: BenchPlan
    var begun = 0
    var done = 0
    var pending: [Int: [Sample?]] = [:]
    var series: [SampleSeries]
    var running: [HDRHistogram]
    var medians: [BenchProgress.Median] = []
    var mediansAt: MonotonicInstant?
    var stop: BenchReport.StopReason?
  }

  /// The minimum time between two computations of the running medians.
  private static let medianInterval = Duration.milliseconds(100)

  private let state: Locked<State>
  private let pace: BlockPace
  private let ids: [String]
  private let roundLimit: Int
  private let progress: @Sendable (BenchProgress) -> Void

  /// Makes a record.
  ///
  /// - Parameters:
  ///   - plan: the order of the targets in each round.
  ///   - roundLimit: the maximum number of rounds.
  init(
    _ plan: BenchPlan, ids: [String], pace: BlockPace, roundLimit: Int,
    progress: @escaping @Sendable (BenchProgress) -> Void
  ) {
    state = Locked(
      State(
        plan: plan, series: Array(repeating: SampleSeries(), count: ids.count),
        running: Array(repeating: HDRHistogram(), count: ids.count)))
    self.pace = pace
    self.ids = ids
    self.roundLimit = roundLimit
    self.progress = progress
  }

  /// Begins the next round, or returns `nil` when the block is over.
  func begin(at now: MonotonicInstant) -> Round? {
    state.withLock { state in
      guard state.stop == nil, pace.continues(after: state.begun, at: now) else { return nil }
      guard state.begun < roundLimit else {
        state.stop = .sampleLimit
        return nil
      }
      let round = Round(number: state.begun, order: state.plan.next() ?? [])
      state.begun += 1
      state.pending[round.number] = Array(repeating: nil, count: ids.count)
      return round
    }
  }

  /// Adds a sample to a round.
  func add(_ sample: Sample, of target: Int, in round: Int, at now: MonotonicInstant) {
    let update = state.withLock { state -> BenchProgress? in
      state.pending[round]?[target] = sample
      guard let samples = state.pending[round], samples.allSatisfy({ $0 != nil }) else { return nil }
      state.pending[round] = nil
      for (index, sample) in samples.enumerated() {
        guard let sample else { continue }
        state.series[index].append(sample)
        if sample.kind == .ok { state.running[index].record((sample.lag + sample.service).microseconds) }
      }
      state.done += 1
      if state.mediansAt.map({ now - $0 >= Self.medianInterval }) ?? true {
        state.mediansAt = now
        state.medians = zip(ids, state.running).compactMap { id, histogram in
          histogram.value(atRank: (histogram.total + 1) / 2).map { .init(id: id, microseconds: $0) }
        }
      }
      return pace.progress(after: state.done, at: now, medians: state.medians)
    }
    if let update { progress(update) }
  }

  /// Stops the block: no further round begins, and unfinished rounds are dropped.
  func interrupt() { state.withLock { $0.stop = .interrupted } }

  /// The results: the number of complete rounds, the samples of each target, and why the block ended early
  /// (`nil` when it did not).
  var result: (rounds: Int, series: [SampleSeries], stop: BenchReport.StopReason?) {
    state.withLock { ($0.done, $0.series, $0.stop) }
  }
}
