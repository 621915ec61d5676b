import NetOptCore
import NetOptLocking
import NetOptTestSupport
import Glibc

/// Measures how late this machine runs what is due, by a thread and a task that do nothing but sleep.
///
/// A call may end that much later than its deadline: whoever measures shares two cores with servers, clients and strangers.
final class Lateness: Sendable {
  private struct Sample {
    var at: MonotonicInstant
    var late: Duration
  }

  private static let step = Duration.milliseconds(10)

  private let samples = Locked<[Sample]>([])
  private let stopped: StopSignal
  private let thread = Locked<JoinableThread?>(nil)
  private let task = Locked<Task<Void, Never>?>(nil)
  private let clock = SystemTimeSource()

  init() throws {
    stopped = try StopSignal()
    let thread = try JoinableThread { [unowned self] in
      while true {
        let due = clock.now() + Self.step
        var descriptors = [pollfd(fd: stopped.descriptor, events: Int16(POLLIN), revents: 0)]
        if poll(&descriptors, 1, 10) > 0 { return }
        note(clock.now() - due)
      }
    }
    self.thread.withLock { $0 = thread }
    let task = Task { [unowned self] in
      while !Task.isCancelled {
        let due = clock.now() + Self.step
        try? await Task.sleep(for: Self.step)
        note(clock.now() - due)
      }
    }
    self.task.withLock { $0 = task }
  }

  /// To be called once.
  func stop() async {
    stopped.raise()
    thread.withLock { $0.take() }?.join()
    let task = task.withLock { $0.take() }
    task?.cancel()
    await task?.value
  }

  private func note(_ late: Duration) {
    guard late > .milliseconds(2) else { return }
    let now = clock.now()
    samples.withLock { samples in
      samples.append(Sample(at: now, late: late))
      if samples.count > 20_000 { samples.removeFirst(10_000) }
    }
  }

  /// How much later than planned something may have ended that ends now: 200 ms, and four times the largest lateness since a
  /// moment. A call ends after several threads and tasks have had their turn, each of which may be so late.
  func allowance(since moment: MonotonicInstant) -> Duration {
    let largest = samples.withLock { samples in
      samples.reversed().prefix { $0.at > moment }.map(\.late).max() ?? .zero
    }
    return .milliseconds(200) + largest * 4
  }
}
