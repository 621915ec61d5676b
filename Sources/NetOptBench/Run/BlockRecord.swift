import NetOptCore
import NetOptLocking

/// Starts the rounds of a block and collects their samples. Several rounds may be in progress at the same
/// time. Only complete rounds count. Safe to use from any task.
final class BlockRecord: Sendable {
  /// A round of the block.
  struct Round: Sendable {
    /// The round's number, from 0.
    let number: Int
    /// The indices of the targets, in the order in which the round sends its requests.
    let order: [Int]
  }

  private struct State {
    /// The order of the targets in the rounds that have not begun.
    var plan: BenchPlan
    /// The number of rounds that have begun.
    var begun = 0
    /// The number of complete rounds.
    var done = 0
    /// The samples of the rounds in progress, by the round's number and the target's index; `nil` for a
    /// sample that was not taken yet.
    var pending: [Int: [Sample?]] = [:]
    /// The samples of the complete rounds, one series for each target.
    var series: [SampleSeries]
    /// The response times of each target's successful requests in the complete rounds, for the medians in the
    /// progress.
    var running: [HDRHistogram]
    /// The medians that the progress shows. They are computed again at most every `medianInterval`.
    var medians: [BenchProgress.Median] = []
    /// When `medians` was computed; `nil` before the first time.
    var mediansAt: MonotonicInstant?
    /// Why the block ends before its planned end; `nil` when it does not.
    var stop: BenchReport.StopReason?
  }

  /// The minimum time between two computations of the medians that the progress shows.
  private static let medianInterval = Duration.milliseconds(100)

  private let state: Locked<State>
  private let pace: BlockPace
  /// The names of the targets. The index of a target is its index here.
  private let ids: [String]
  /// The maximum number of rounds that may begin in this block, so that the run does not exceed its maximum
  /// number of samples.
  private let roundLimit: Int
  private let progress: @Sendable (BenchProgress) -> Void

  /// Makes a record.
  ///
  /// - Parameters:
  ///   - plan: the order of the targets in each round.
  ///   - ids: the names of the targets.
  ///   - pace: decides when the block ends.
  ///   - roundLimit: the maximum number of rounds in the block. It follows from the maximum number of samples
  ///     in a run.
  ///   - progress: called after each complete round.
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

  /// Begins the next round. Returns `nil` when the block begins no further round.
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

  /// Adds a sample to a round in progress. The last sample of a round completes it.
  ///
  /// - Parameters:
  ///   - target: the index of the target.
  ///   - round: the number of the round.
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

  /// Stops the block: no further round begins, and the rounds in progress do not count unless their remaining
  /// samples are still added.
  func interrupt() { state.withLock { $0.stop = .interrupted } }

  /// The results: the number of complete rounds, the samples of each target, and why the block ended early
  /// (`nil` when it did not).
  var result: (rounds: Int, series: [SampleSeries], stop: BenchReport.StopReason?) {
    state.withLock { ($0.done, $0.series, $0.stop) }
  }
}
