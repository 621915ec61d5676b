/// A fault that a `Splice` injects into one connection.
package struct SpliceFault: Sendable, Hashable {
  /// What the fault does.
  package enum Action: Sendable, Hashable {
    /// Both sides get a TCP reset.
    case reset
    /// Both sides get a TCP FIN. TLS ends without its close_notify.
    case close
    /// No byte passes in either direction for this time; then the connection resumes.
    case stall(Duration)
  }

  /// When the fault occurs.
  package enum Moment: Sendable, Hashable {
    /// After this many bytes from the client. With 0, before the first bytes of the client are passed on.
    case clientBytes(Int)
    /// After this many bytes from the server.
    case serverBytes(Int)
    /// When no byte has passed for this time, and the server has sent a byte before.
    case idle(Duration)
    /// When this time has passed since the connection was accepted.
    case age(Duration)
  }

  package let action: Action
  package let moment: Moment

  package init(_ action: Action, at moment: Moment) {
    self.action = action
    self.moment = moment
  }
}
