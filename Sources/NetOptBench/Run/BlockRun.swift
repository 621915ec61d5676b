package import NetOptCore
import Synchronization

/// Performs one block of a bench run: all its rounds, with connections that are all new (cold) or all kept
/// (warm). In a round, each target gets one request. docs/bench.md explains blocks and rounds.
struct BlockRun: Sendable {
  /// The maximum number of concurrent requests in an open loop. When a request is due and this number is
  /// reached, the request begins late and counts as late.
  static let maxCallsInProgress = 10_000

  private let block: Block
  private let targets: [BenchTarget]
  private let samplers: [Sampler]
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

  /// Runs the block as a closed loop: each loop starts a request when its previous request has ended. The
  /// number of parallel loops, each with its own rounds, is the number of connections times `streams`.
  func closedLoop(streams: Int) async {
    // A single loop needs no task of its own.
    if samplers.count * streams == 1 {
      return await withTaskExecutorPreference(samplers[0].executor) { await rounds(samplers[0]) }
    }
    await withTaskGroup(of: Void.self) { group in
      for sampler in samplers {
        for _ in 0..<streams { group.addTask(executorPreference: sampler.executor) { await rounds(sampler) } }
      }
    }
  }

  /// Performs rounds one after the other, until the block ends or is interrupted.
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

  /// Runs the block as an open loop: starts `rate` requests per second on schedule, whether or not earlier
  /// requests have ended. The connections take turns.
  func openLoop(rate: Double) async {
    // Starts the requests on the executor that performs them. From another thread, each request would take
    // two thread switches and contend for locks.
    await withTaskExecutorPreference(samplers[0].executor) { await startRequests(at: rate) }
  }

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

  private static func offset(of slot: Int, at rate: Double) -> Duration {
    .nanoseconds(Int64(Double(slot) / rate * 1e9))
  }
}

/// The number of requests in progress in an open loop.
private final class CallsInProgress: Sendable {
  let count = Atomic(0)
}

/// A clock that tasks can wait for. A test can provide its own clock.
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

  /// The present moment.
  package func now() -> MonotonicInstant { SystemTimeSource().now() }

  /// The time between the end of the sleep and the moment waited for. Waking up takes about as long, in a
  /// virtual machine often longer. At thousands of requests per second the waits are too short to sleep, and
  /// a core is busy all the time.
  private static let busyWait = Duration.microseconds(500)

  /// Sleeps until shortly before the moment, then yields to other tasks until the moment has come.
  package func wait(until moment: MonotonicInstant) async -> Bool {
    let rest = moment - now() - Self.busyWait
    if rest > Self.busyWait { try? await Task.sleep(for: rest, tolerance: .zero) }
    while !Task.isCancelled, now() < moment { await Task.yield() }
    return !Task.isCancelled
  }
}
