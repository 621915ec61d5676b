package import NetOptCore
import Synchronization

/// Performs one block of a bench run: all its rounds. In a cold block each request opens a new connection. In
/// a warm block the requests reuse open connections. In a round, each target gets one request. docs/bench.md
/// explains blocks and rounds.
struct BlockRun: Sendable {
  /// The maximum number of concurrent requests in an open loop. A request that is due while this many are in
  /// progress starts late and counts as late.
  static let maxCallsInProgress = 10_000

  private let block: Block
  /// The targets of the rounds. The elements of `BlockRecord.Round.order` are indices of this array.
  private let targets: [BenchTarget]
  /// One sampler for each connection to a target.
  private let samplers: [Sampler]
  /// Begins the rounds and collects their samples.
  private let record: BlockRecord
  private let clock: any BenchClock

  /// Makes the run of a block.
  ///
  /// - Parameter samplers: one sampler for each connection to a target.
  init(
    _ block: Block, targets: [BenchTarget], samplers: [Sampler], record: BlockRecord, clock: any BenchClock
  ) {
    self.block = block
    self.targets = targets
    self.samplers = samplers
    self.record = record
    self.clock = clock
  }

  /// Runs the block as a closed loop: it starts a request when the previous request has ended. Several such
  /// loops run in parallel, each with its own rounds. Their number is the number of connections times
  /// `streams`.
  ///
  /// - Parameter streams: the number of concurrent requests on each connection.
  func closedLoop(streams: Int) async {
    // A single loop runs in the caller's task.
    if samplers.count * streams == 1 {
      return await withTaskExecutorPreference(samplers[0].executor) { await rounds(samplers[0]) }
    }
    await withTaskGroup(of: Void.self) { group in
      for sampler in samplers {
        for _ in 0..<streams { group.addTask(executorPreference: sampler.executor) { await rounds(sampler) } }
      }
    }
  }

  /// Performs rounds one after the other on one connection to each target, until the block ends or the task
  /// is cancelled.
  private func rounds(_ sampler: Sampler) async {
    while let round = record.begin(at: clock.now()) {
      for index in round.order {
        guard !Task.isCancelled, let sample = await sampler.sample(targets[index], block.connection) else {
          return record.interrupt()
        }
        record.add(sample, of: index, in: round.number, at: clock.now())
      }
    }
  }

  /// Runs the block as an open loop: it starts requests on schedule, whether or not earlier requests have
  /// ended. The connections to a target take turns.
  ///
  /// - Parameter rate: the number of requests per second, over all targets.
  func openLoop(rate: Double) async {
    // Starts the requests on the executor that performs them. From another thread, each request would take
    // two thread switches, and both threads would compete for locks.
    await withTaskExecutorPreference(samplers[0].executor) { await startRequests(at: rate) }
  }

  /// Starts the requests at their scheduled moments, and waits until all have ended.
  ///
  /// - Parameter rate: the number of requests per second, over all targets.
  private func startRequests(at rate: Double) async {
    let start = clock.now()
    await withDiscardingTaskGroup { group in
      var slot = 0
      let callsInProgress = CallsInProgress()
      while let round = record.begin(at: start + Self.offset(of: slot, at: rate)) {
        for index in round.order {
          let due = start + Self.offset(of: slot, at: rate)
          let sampler = samplers[slot % samplers.count]
          slot += 1
          guard await clock.wait(until: due), await waitForCapacity(callsInProgress) else {
            return record.interrupt()
          }
          callsInProgress.count.add(1, ordering: .relaxed)
          group.addTask(executorPreference: sampler.executor) {
            let sample = await sampler.sample(targets[index], block.connection, due: due)
            callsInProgress.count.subtract(1, ordering: .relaxed)
            guard let sample else { return record.interrupt() }
            record.add(sample, of: index, in: round.number, at: clock.now())
          }
        }
      }
    }
  }

  /// Waits until fewer than `maxCallsInProgress` requests are in progress.
  ///
  /// - Returns: `false` when the task was cancelled, otherwise `true`.
  private func waitForCapacity(_ callsInProgress: CallsInProgress) async -> Bool {
    while callsInProgress.count.load(ordering: .relaxed) >= Self.maxCallsInProgress {
      guard await clock.wait(until: clock.now() + .milliseconds(1)) else { return false }
      // A test's clock may return at once. The yield lets the requests in progress proceed nevertheless.
      await Task.yield()
    }
    return true
  }

  /// The time from the start of the block to the scheduled moment of a request. `slot` is the request's
  /// number in the block, from 0.
  private static func offset(of slot: Int, at rate: Double) -> Duration {
    .nanoseconds(Int64(clamped: Double(slot) / rate * 1e9))
  }
}

/// The number of requests of an open loop that have started and not ended. A class, so that all tasks share
/// it.
private final class CallsInProgress: Sendable {
  let count = Atomic(0)
}

/// A clock whose moments a task can wait for. Tests pass their own clock.
package protocol BenchClock: TimeSource {
  /// Waits until a moment. Returns at once when the moment has passed.
  ///
  /// - Returns: `false` when the task was cancelled, otherwise `true`.
  func wait(until moment: MonotonicInstant) async -> Bool
}

/// The system's clock.
package struct SystemBenchClock: BenchClock {
  /// Makes a clock.
  package init() {}

  /// The present moment of the system's monotonic clock.
  package func now() -> MonotonicInstant { SystemTimeSource().now() }

  /// How long before the awaited moment the sleep ends. Waking up takes about this long, and often longer in
  /// a virtual machine. The rest of the wait keeps a core busy. A wait of at most twice this time does not
  /// sleep at all. At thousands of requests per second all waits are that short.
  private static let busyWait = Duration.microseconds(500)

  /// Sleeps until `busyWait` before the moment. Then yields to other tasks again and again until the moment
  /// has come.
  package func wait(until moment: MonotonicInstant) async -> Bool {
    let rest = moment - now() - Self.busyWait
    if rest > Self.busyWait { try? await Task.sleep(for: rest, tolerance: .zero) }
    while !Task.isCancelled, now() < moment { await Task.yield() }
    return !Task.isCancelled
  }
}
