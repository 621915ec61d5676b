import CCurl

/// The reports of libcurl's callbacks in this turn of the loop, and the state that the callbacks use.
/// Confined to the loop's thread. The callbacks write the reports during calls into libcurl. `CurlMulti`
/// reads and removes the reports after these calls.
final class CallbackState {
  /// libcurl's latest interest in one descriptor.
  struct Interest {
    let descriptor: Int32
    /// The readiness that libcurl wants to be told of; empty for none.
    var readiness: Readiness
    /// Whether libcurl closed the socket with this descriptor in this turn. A `readiness` that is not empty
    /// then belongs to a new socket that got the same descriptor.
    var wasClosed: Bool
  }

  /// The opening or the closing of a socket.
  enum SocketEvent {
    /// A transfer opened the socket with this descriptor.
    case opened(Int32, by: Transfer)
    /// libcurl closes the socket with this descriptor.
    case closed(Int32)
  }

  // Unchecked exclusivity: see CurlMulti.
  /// The changed interests, at most one for each descriptor.
  @exclusivity(unchecked) private(set) var interests: [Interest] = []
  /// The sockets that were opened and closed, in the order of these events. A descriptor may be opened,
  /// closed and opened again in one turn.
  @exclusivity(unchecked) private(set) var socketEvents: [SocketEvent] = []
  /// The transfers that opened a socket, and those that began to wait for a connection that other transfers
  /// are opening.
  @exclusivity(unchecked) var opened: [Transfer] = []
  /// The transfers that reached the gate.
  @exclusivity(unchecked) var ready: [Transfer] = []
  /// The transfers that received a complete head, a piece of a body or a frame that matters, or that paused.
  @exclusivity(unchecked) var touched: [Transfer] = []
  /// The connections that became ready less than a second ago and have carried no request. The gate adds
  /// them, and `closed` removes them. Both run within libcurl's callbacks, so the callbacks' state has them.
  @exclusivity(unchecked) var newConnections = NewConnections()
  /// The open connections, for the checks of the gate.
  @exclusivity(unchecked) var live = LiveConnections()
  /// The time that bodies have taken in this turn, and the transfers that wait for a later turn.
  @exclusivity(unchecked) var receiving = ReceivingTurn()
  /// Counts connections, handshakes and bytes.
  let counter: TransportCounter
  /// When libcurl wants to be called next, in milliseconds from the report. -1 means that it wants no timer;
  /// `nil` means that it reported no change.
  @exclusivity(unchecked) var timeout: Int?

  init(_ counter: TransportCounter) { self.counter = counter }

  /// Gives a callback of libcurl access to the state in its user data.
  ///
  /// Unsafe: the state is not retained here. The `MultiHandle` whose callback runs keeps it alive.
  ///
  /// - Parameter data: the callback's user data.
  static func withState(userData data: UnsafeMutableRawPointer, _ body: (CallbackState) -> Void) {
    Unmanaged<CallbackState>.fromOpaque(data)._withUnsafeGuaranteedRef(body)
  }

  /// Records libcurl's interest in a descriptor. The last report counts.
  func setInterest(_ descriptor: Int32, _ readiness: Readiness) {
    if let index = interests.firstIndex(where: { $0.descriptor == descriptor }) {
      interests[index].readiness = readiness
    } else {
      interests.append(Interest(descriptor: descriptor, readiness: readiness, wasClosed: false))
    }
  }

  /// Records that a transfer opened a socket.
  func opened(_ descriptor: Int32, by transfer: Transfer) {
    socketEvents.append(.opened(descriptor, by: transfer))
    opened.append(transfer)
    live.opened(descriptor)
  }

  /// Records that libcurl closes a socket.
  func closed(_ descriptor: Int32) {
    live.closed(descriptor)
    socketEvents.append(.closed(descriptor))
    if !newConnections.isEmpty { newConnections.closed(descriptor) }
    setInterest(descriptor, [])
    if let index = interests.firstIndex(where: { $0.descriptor == descriptor }) {
      interests[index].wasClosed = true
    }
  }

  /// Whether there are interests or socket events that `CurlMulti` has not applied.
  var hasSocketChanges: Bool { !interests.isEmpty || !socketEvents.isEmpty }

  /// Removes the interests and the socket events after `CurlMulti` has applied them.
  func removeSocketChanges() {
    interests.removeAllOfTurn()
    socketEvents.removeAllOfTurn()
  }

  /// Removes all transfers. Used at the end of the `CurlMulti`, when nothing acts on the transfers any more:
  /// they refer to this state, so they would keep it and themselves alive.
  func removeTransfers() {
    opened = []
    ready = []
    touched = []
    receiving = ReceivingTurn()
  }
}

extension Array {
  /// Removes all elements and keeps the capacity. For arrays with at most one element, which are the most
  /// frequent, this takes a third of the time of `removeAll(keepingCapacity:)`.
  mutating func removeAllOfTurn() {
    switch count {
    case 0: break
    case 1: removeLast()
    default: removeAll(keepingCapacity: true)
    }
  }
}
