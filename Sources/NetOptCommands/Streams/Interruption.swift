import Glibc
import NetOptCore
import NetOptLocking

/// Turns SIGINT and SIGTERM into something that happens in order: the first one runs an action, which ends the work
/// in hand; the next one ends the process on the spot.
package final class Interruption: Sendable {
  private struct State {
    var signal: Int32?
    var action: (@Sendable () -> Void)?
  }

  private let state = Locked(State())

  /// Makes an interruption that nothing causes yet.
  package init() {}

  /// The first signal that came, or `nil`.
  package var signal: Int32? { state.withLock(\.signal) }

  /// Sets what the first signal runs, on the thread that waits for signals. When it has come already, the action
  /// runs at once.
  func onSignal(_ action: @escaping @Sendable () -> Void) {
    let isLate = state.withLock { state in
      state.action = action
      return state.signal != nil
    }
    if isLate { action() }
  }

  /// Notes a signal and runs the action, the first time.
  func receive(_ signal: Int32) {
    let action = state.withLock { state -> (@Sendable () -> Void)? in
      guard state.signal == nil else { return nil }
      state.signal = signal
      return state.action
    }
    action?()
  }

  /// Keeps SIGINT and SIGTERM for `waitForSignals`. SIGPIPE and SIGXFSZ are ignored, so that writing to a closed pipe
  /// or beyond the largest file size is an error (`EPIPE`, `EFBIG`). To be called by the main thread before there are
  /// others: threads inherit the mask.
  package static func holdSignals() {
    Glibc.signal(SIGPIPE, SIG_IGN)
    Glibc.signal(SIGXFSZ, SIG_IGN)
    var mask = signals
    pthread_sigmask(SIG_BLOCK, &mask, nil)
  }

  /// Waits for SIGINT and SIGTERM on the calling thread until the process ends. It is to be the main thread: one that
  /// awaits instead is handed to libdispatch, which lets every signal through there.
  package func waitForSignals() -> Never {
    var mask = Self.signals
    var number: Int32 = 0
    while sigwait(&mask, &number) != 0 {}
    // From now on this thread alone takes the signals, with their default effect: the process ends. That has to be
    // so before the action runs, which may take as long as it likes.
    Glibc.signal(SIGINT, SIG_DFL)
    Glibc.signal(SIGTERM, SIG_DFL)
    pthread_sigmask(SIG_UNBLOCK, &mask, nil)
    receive(number)
    while true { pause() }
  }

  private static var signals: sigset_t {
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, SIGINT)
    sigaddset(&set, SIGTERM)
    return set
  }
}
