import NetOptCore

/// Decides from the times of the kernel's messages when to read the network fingerprint again, and whether
/// the machine is in another network than before. It is a state machine without I/O.
///
/// A change of the network causes a burst of messages, and the network is complete only after the last of
/// them. So the reading of the fingerprint is due when there was no message for half a second. It is due at
/// the latest 5 s after the first message, so that a link that keeps flapping cannot postpone it forever.
struct NetworkChange: Sendable {
  /// The time without messages that ends a burst.
  static let silence = Duration.milliseconds(500)
  /// The longest time from the first message of a burst to the reading of the fingerprint.
  static let longest = Duration.seconds(5)

  /// The fingerprint of the current network. The loss of the last default route does not change it.
  private(set) var network: NetworkFingerprint
  /// When the first and the last message of the current burst arrived; `nil` when no message has arrived
  /// since the fingerprint was last read.
  private var burst: (first: MonotonicInstant, last: MonotonicInstant)?

  /// Makes the state machine for a current network.
  init(_ network: NetworkFingerprint) { self.network = network }

  /// The time at which to read the network fingerprint. `nil` when no reading is due.
  var due: MonotonicInstant? { burst.map { min($0.last + Self.silence, $0.first + Self.longest) } }

  /// Notes that a message of the kernel has arrived.
  mutating func noteMessage(at now: MonotonicInstant) { burst = (burst?.first ?? now, now) }

  /// Ends the burst, and compares the fingerprint that was just read with `network`.
  ///
  /// - Parameter found: the fingerprint that was just read.
  ///
  /// The loss of the last default route is not a new network. When the link comes back a moment later, the
  /// network is the same, and its connections still work.
  ///
  /// - Returns: whether the machine has moved to another network. `network` is then the fingerprint of that
  ///   network.
  mutating func update(_ found: NetworkFingerprint) -> Bool {
    burst = nil
    guard found != network, found.isRouted else { return false }
    network = found
    return true
  }
}
