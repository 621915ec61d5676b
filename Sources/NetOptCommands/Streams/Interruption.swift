import Glibc
import NetOptCore
import NetOptLocking

/// Handles SIGINT and SIGTERM. The first signal runs an action, which ends the work of the command in an
/// orderly way. A second signal ends the process at once.
package final class Interruption: Sendable {
  private struct State {
    /// The first signal; `nil` until one has arrived.
    var signal: Int32?
    /// What to do at the first signal; `nil` until the command sets it.
    var action: (@Sendable () -> Void)?
  }

  private let state = Locked(State())

  /// Creates an interruption without a signal.
  package init() {}

  /// The number of the first signal that arrived, SIGINT or SIGTERM; `nil` if none has arrived.
  package var signal: Int32? { state.withLock(\.signal) }

  /// Sets the action for the first signal. The action runs on the thread that waits for signals. If a signal
  /// has already arrived, the action runs at once on the calling thread.
  func onSignal(_ action: @escaping @Sendable () -> Void) {
    let isLate = state.withLock { state in
      state.action = action
      return state.signal != nil
    }
    if isLate { action() }
  }

  /// Records a signal and runs the action, if it is the first signal. Ignores later signals.
  func receive(_ signal: Int32) {
    let action = state.withLock { state -> (@Sendable () -> Void)? in
      guard state.signal == nil else { return nil }
      state.signal = signal
      return state.action
    }
    action?()
  }

  /// Blocks SIGINT and SIGTERM, so that `waitForSignals` receives them. Ignores SIGPIPE and SIGXFSZ, so that
  /// they do not end the process: a write to a closed pipe then fails with `EPIPE`, and a write beyond the
  /// limit of the file size (RLIMIT_FSIZE) fails with `EFBIG`. Call this on the main thread before other
  /// threads exist: threads inherit the signal mask.
  package static func holdSignals() {
    Glibc.signal(SIGPIPE, SIG_IGN)
    Glibc.signal(SIGXFSZ, SIG_IGN)
    var mask = signals
    pthread_sigmask(SIG_BLOCK, &mask, nil)
  }

  /// Waits on the calling thread for the first SIGINT or SIGTERM, and calls `receive`. Then the thread sleeps
  /// until the process ends. Call this on the main thread. If the main thread awaits instead,
  /// libdispatch takes it over and unblocks all signals on it.
  package func waitForSignals() -> Never {
    var mask = Self.signals
    var number: Int32 = 0
    while sigwait(&mask, &number) != 0 {}
    // From now on, only this thread receives the signals, with their default effect: they end the process.
    // This must be so before the action runs, because the action may take any length of time.
    Glibc.signal(SIGINT, SIG_DFL)
    Glibc.signal(SIGTERM, SIG_DFL)
    pthread_sigmask(SIG_UNBLOCK, &mask, nil)
    receive(number)
    while true { pause() }
  }

  /// The set of the signals that this type handles: SIGINT and SIGTERM.
  private static var signals: sigset_t {
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, SIGINT)
    sigaddset(&set, SIGTERM)
    return set
  }
}
