import NetOptCore

/// Decides from the kernel's messages when to look at the network again, and whether it is another one.
///
/// A change brings a burst of messages, and the network is whole only after the last of them: it is looked at when there
/// was silence for half a second, but 5 s after the first message at the latest, so that a link that flaps for ever does
/// not put it off for ever. A state machine without I/O.
struct NetworkChange: Sendable {
  /// The silence that ends a burst.
  static let silence = Duration.milliseconds(500)
  /// The longest that a burst puts the look off.
  static let longest = Duration.seconds(5)

  /// The network that is in use.
  private(set) var network: NetworkFingerprint
  private var burst: (first: MonotonicInstant, last: MonotonicInstant)?

  /// Begins in a network.
  init(_ network: NetworkFingerprint) { self.network = network }

  /// When to look at the network; `nil` for not at all.
  var due: MonotonicInstant? { burst.map { min($0.last + Self.silence, $0.first + Self.longest) } }

  /// The kernel has said that something has changed.
  mutating func heard(at now: MonotonicInstant) { burst = (burst?.first ?? now, now) }

  /// The network was looked at.
  ///
  /// Losing the last default route is no new network: a link that comes back a moment later is the same one, and so are
  /// the connections on it.
  ///
  /// - Returns: whether this is another network than the one that was in use.
  mutating func looked(_ found: NetworkFingerprint) -> Bool {
    burst = nil
    guard found != network, found.isRouted else { return false }
    network = found
    return true
  }
}
