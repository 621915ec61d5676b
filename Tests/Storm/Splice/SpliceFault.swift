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
    /// After this many bytes from the client. 0: before the first byte is passed on.
    case clientBytes(Int)
    /// After this many bytes from the server.
    case serverBytes(Int)
    /// After no byte has passed for this time, once the server has sent a byte.
    case idle(Duration)
    /// When the connection has this age.
    case age(Duration)
  }

  package let action: Action
  package let moment: Moment

  package init(_ action: Action, at moment: Moment) {
    self.action = action
    self.moment = moment
  }
}
