package import NetOptCore
import Synchronization

/// Performs one block of a run.
struct BlockRun: Sendable {
  /// The most requests that are under way at once in an open loop. What is due then begins late, and is counted as such.
  static let mostUnderWay = 10_000

  private let block: Block
  private let targets: [BenchTarget]
  private let samplers: [Sampler]
  private let record: BlockRecord
  private let clock: any BenchClock

  /// Makes the run of a block.
  ///
  /// - Parameter samplers: one for each connection to a target.
  init(
    _ block: Block, targets: [BenchTarget], samplers: [Sampler], record: BlockRecord, clock: any BenchClock
  ) {
    self.block = block
    self.targets = targets
    self.samplers = samplers
    self.record = record
    self.clock = clock
  }

  /// One request when the one before has ended, in so many rounds beside each other as there are connections times streams.
  func closedLoop(streams: Int) async {
    // A single one has no task of its own.
    if samplers.count * streams == 1 {
      return await withTaskExecutorPreference(samplers[0].executor) { await rounds(samplers[0]) }
    }
    await withTaskGroup(of: Void.self) { group in
      for sampler in samplers {
        for _ in 0..<streams { group.addTask(executorPreference: sampler.executor) { await rounds(sampler) } }
      }
    }
  }

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

  /// Requests at so many a second, each at its moment, whatever became of those before. The connections take turns.
  func openLoop(rate: Double) async {
    // Where the requests are: started from another thread, each would take two changes of threads and fight for locks.
    await withTaskExecutorPreference(samplers[0].executor) { await pace(rate) }
  }

  private func pace(_ rate: Double) async {
    let start = clock.now()
    await withDiscardingTaskGroup { group in
      var slot = 0
      let underWay = UnderWay()
      while let round = record.begin(at: start + Self.offset(of: slot, at: rate)) {
        for index in round.order {
          let due = start + Self.offset(of: slot, at: rate)
          let sampler = samplers[slot % samplers.count]
          slot += 1
          guard await clock.wait(until: due), await room(underWay) else { return record.interrupt() }
          underWay.count.add(1, ordering: .relaxed)
          group.addTask(executorPreference: sampler.executor) {
            let sample = await sampler.sample(targets[index], block.connection, due: due)
            underWay.count.subtract(1, ordering: .relaxed)
            guard let sample else { return record.interrupt() }
            record.add(sample, of: index, in: round.number, at: clock.now())
          }
        }
      }
    }
  }

  /// Waits until not too many requests are under way.
  ///
  /// - Returns: whether the task goes on; `false` when it was cancelled.
  private func room(_ underWay: UnderWay) async -> Bool {
    while underWay.count.load(ordering: .relaxed) >= Self.mostUnderWay {
      guard await clock.wait(until: clock.now() + .milliseconds(1)) else { return false }
      // A clock of a test's does not wait; those that are under way have to get on nevertheless.
      await Task.yield()
    }
    return true
  }

  private static func offset(of slot: Int, at rate: Double) -> Duration {
    .nanoseconds(Int64(Double(slot) / rate * 1e9))
  }
}

/// How many requests of an open loop are under way.
private final class UnderWay: Sendable {
  let count = Atomic(0)
}

/// A clock that can be waited for, so that a test can put one of its own in its place.
package protocol BenchClock: TimeSource {
  /// Returns at a moment, at once when it is over.
  ///
  /// - Returns: whether the task goes on; `false` when it was cancelled.
  func wait(until moment: MonotonicInstant) async -> Bool
}

/// The system's clock.
package struct SystemBenchClock: BenchClock {
  /// Makes a clock.
  package init() {}

  /// The present moment.
  package func now() -> MonotonicInstant { SystemTimeSource().now() }

  /// How long before the moment sleep ends. Waking up takes about as long, in a virtual machine often longer. At thousands of
  /// requests a second a core is busy all the time, with waiting too.
  private static let awake = Duration.microseconds(500)

  /// Sleeps until shortly before the moment, and lets others run until it is there.
  package func wait(until moment: MonotonicInstant) async -> Bool {
    let rest = moment - now() - Self.awake
    if rest > Self.awake { try? await Task.sleep(for: rest, tolerance: .zero) }
    while !Task.isCancelled, now() < moment { await Task.yield() }
    return !Task.isCancelled
  }
}
