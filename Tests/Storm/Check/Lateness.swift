import Glibc
package import NetOptCore
import NetOptLocking
import NetOptTestSupport
import Synchronization

/// Measures how late this machine runs due work, because the test shares few cores with servers, clients and
/// other processes. A call may end late for this reason alone. `allowance` computes from the measurements how
/// late it may end.
///
/// A thread and a task do nothing but sleep, and the measurement is how long after their due time they wake.
/// The thread also reads how long the threads of this process have waited for a core.
package final class Lateness: Sendable {
  /// A measurement above 2 ms. `late` or `waited` is zero when only the other one was measured.
  private struct Sample {
    /// When the measurement ended.
    var at: MonotonicInstant
    /// How long after its due time the thread or the task woke.
    var late = Duration.zero
    /// How long one thread waited for a core since the previous reading: the thread that waited longest.
    var waited = Duration.zero
  }

  /// How long the thread and the task sleep each time.
  private static let step = Duration.milliseconds(10)
  /// The number of the thread's steps between two readings of the waits for a core.
  private static let stepsPerReading = 5
  /// The maximum number of samples. When there are more, the older half is dropped.
  private static let mostSamples = 20_000

  /// The samples, oldest first.
  private let samples = Locked<[Sample]>([])
  private let stopped: StopSignal
  /// The thread that measures; `nil` after `stop`.
  private let thread = Locked<JoinableThread?>(nil)
  /// The task that measures; `nil` after `stop`.
  private let task = Locked<Task<Void, Never>?>(nil)
  private let clock = SystemTimeSource()
  private let unjudgedCalls = Atomic(0)

  /// The number of calls that `noteUnjudged` counted.
  package var unjudged: Int { unjudgedCalls.load(ordering: .relaxed) }

  /// Counts a call whose end was not judged, because the machine was too late during the call.
  package func noteUnjudged() { unjudgedCalls.add(1, ordering: .relaxed) }

  /// Starts the measurement.
  package init() throws {
    stopped = try StopSignal()
    let thread = try JoinableThread { [unowned self] in measure() }
    self.thread.withLock { $0 = thread }
    let task = Task { [unowned self] in
      while !Task.isCancelled {
        let due = clock.now() + Self.step
        try? await Task.sleep(for: Self.step)
        note(late: clock.now() - due)
      }
    }
    self.task.withLock { $0 = task }
  }

  /// Stops the measurement. Must be called once.
  package func stop() async {
    stopped.raise()
    thread.withLock { $0.take() }?.join()
    let task = task.withLock { $0.take() }
    task?.cancel()
    await task?.value
  }

  /// The loop of the thread.
  private func measure() {
    var waits = RunQueueWaits()
    var steps = 0
    while true {
      let due = clock.now() + Self.step
      var descriptors = [pollfd(fd: stopped.descriptor, events: Int16(POLLIN), revents: 0)]
      if poll(&descriptors, 1, 10) > 0 { return }
      note(late: clock.now() - due)
      steps += 1
      if steps.isMultiple(of: Self.stepsPerReading) { note(waited: waits.longest()) }
    }
  }

  /// Adds a sample, unless both values are at most 2 ms.
  private func note(late: Duration = .zero, waited: Duration = .zero) {
    guard late > .milliseconds(2) || waited > .milliseconds(2) else { return }
    let now = clock.now()
    samples.withLock { samples in
      samples.append(Sample(at: now, late: late, waited: waited))
      if samples.count > Self.mostSamples { samples.removeFirst(Self.mostSamples / 2) }
    }
  }

  /// How late an event that happens now may come. It is the sum of three times: 300 ms; four times the
  /// largest lateness since `moment`, because the end of a call takes several threads and tasks; and twice
  /// the sum of the waits for a core (`Sample.waited`) since `moment`.
  ///
  /// - Parameter moment: when the work began that leads to the event.
  package func allowance(since moment: MonotonicInstant) -> Duration {
    let recent = samples.withLock { samples in samples.reversed().prefix { $0.at > moment } }
    let largest = recent.map(\.late).max() ?? .zero
    return .milliseconds(300) + largest * 4 + recent.map(\.waited).reduce(.zero, +) * 2
  }
}
