/// A fault that a `Splice` injects into one connection.
package struct SpliceFault: Sendable, Hashable {
  /// What happens.
  package enum Action: Sendable, Hashable {
    /// Both sides get a TCP reset.
    case reset
    /// Both sides get an orderly TCP end. TLS is cut off without its close_notify.
    case close
    /// Nothing passes for so long, in either direction; then the connection goes on.
    case stall(Duration)
  }

  /// When it happens.
  package enum Moment: Sendable, Hashable {
    /// So many bytes have come from the client. 0 means: before the first byte is passed on.
    case clientBytes(Int)
    /// So many bytes have come from the server.
    case serverBytes(Int)
    /// No byte has passed for so long, and the server has sent one before.
    case idle(Duration)
    /// The connection is so old.
    case age(Duration)
  }

  package let action: Action
  package let moment: Moment

  package init(_ action: Action, at moment: Moment) {
    self.action = action
    self.moment = moment
  }
}
