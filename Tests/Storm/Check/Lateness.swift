import Glibc
package import NetOptCore
import NetOptLocking
import NetOptTestSupport
import Synchronization

/// Measures how late this machine runs due work. A thread and a task do nothing but sleep, and their
/// oversleep is measured; so is the time for which the threads of this process wait for a core.
///
/// A call may end that much after its deadline, because the test shares few cores with servers, clients and
/// other processes.
package final class Lateness: Sendable {
  private struct Sample {
    var at: MonotonicInstant
    var late = Duration.zero
    var waited = Duration.zero
  }

  private static let step = Duration.milliseconds(10)
  /// The number of steps between two readings of the threads' waits.
  private static let stepsPerReading = 5
  private static let mostSamples = 20_000

  private let samples = Locked<[Sample]>([])
  private let stopped: StopSignal
  private let thread = Locked<JoinableThread?>(nil)
  private let task = Locked<Task<Void, Never>?>(nil)
  private let clock = SystemTimeSource()
  private let unjudgedCalls = Atomic(0)

  /// The number of calls that ended late while the machine was too late to judge them.
  package var unjudged: Int { unjudgedCalls.load(ordering: .relaxed) }

  /// Counts a call that cannot be judged.
  package func noteUnjudged() { unjudgedCalls.add(1, ordering: .relaxed) }

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

  private func note(late: Duration = .zero, waited: Duration = .zero) {
    guard late > .milliseconds(2) || waited > .milliseconds(2) else { return }
    let now = clock.now()
    samples.withLock { samples in
      samples.append(Sample(at: now, late: late, waited: waited))
      if samples.count > Self.mostSamples { samples.removeFirst(Self.mostSamples / 2) }
    }
  }

  /// How long after its planned time an event that happens now may come: 300 ms, plus four times the largest
  /// lateness since `moment`, plus twice the time that threads waited for a core. The end of a call takes
  /// several threads and tasks.
  package func allowance(since moment: MonotonicInstant) -> Duration {
    let recent = samples.withLock { samples in samples.reversed().prefix { $0.at > moment } }
    let largest = recent.map(\.late).max() ?? .zero
    return .milliseconds(300) + largest * 4 + recent.map(\.waited).reduce(.zero, +) * 2
  }
}
