import CCurl

/// The reports of libcurl's callbacks in this turn of the loop, and the state that the callbacks use.
/// Confined to the loop's thread. It is written only during calls into libcurl, and read and emptied only
/// outside of these calls.
final class CallbackState {
  /// libcurl's latest interest in one descriptor.
  struct Interest {
    let descriptor: Int32
    /// The events to watch for; empty for none.
    var readiness: Readiness
    /// Whether the descriptor was closed in between. Its number then means another socket than before.
    var wasClosed: Bool
  }

  /// The opening or the closing of a socket.
  enum SocketEvent {
    case opened(Int32, by: Transfer)
    case closed(Int32)
  }

  // Unchecked exclusivity: see CurlMulti.
  @exclusivity(unchecked) private(set) var interests: [Interest] = []
  /// The events in their order: a descriptor may be opened, closed and opened again in one turn.
  @exclusivity(unchecked) private(set) var socketEvents: [SocketEvent] = []
  /// Transfers that opened a socket, or that wait for a connection that others are opening.
  @exclusivity(unchecked) var opened: [Transfer] = []
  /// Transfers that reached the gate.
  @exclusivity(unchecked) var ready: [Transfer] = []
  /// Transfers that received something, or paused.
  @exclusivity(unchecked) var touched: [Transfer] = []
  /// Connections that were opened recently and have carried no request. Kept here because callbacks use them.
  @exclusivity(unchecked) var newConnections = NewConnections()
  /// The open connections, for the checks of the gate.
  @exclusivity(unchecked) var live = LiveConnections()
  @exclusivity(unchecked) var receiving = ReceivingTurn()
  /// The timeout that libcurl wants, in milliseconds: -1 for no timer, `nil` for no change.
  @exclusivity(unchecked) var timeout: Int?

  /// Gives a callback of libcurl access to the state.
  ///
  /// Unsafe: the state lives as long as the multi handle that calls, and is not retained.
  ///
  /// - Parameter data: the callback's user data.
  static func withState(userData data: UnsafeMutableRawPointer, _ body: (CallbackState) -> Void) {
    Unmanaged<CallbackState>.fromOpaque(data)._withUnsafeGuaranteedRef(body)
  }

  func setInterest(_ descriptor: Int32, _ readiness: Readiness) {
    if let index = interests.firstIndex(where: { $0.descriptor == descriptor }) {
      interests[index].readiness = readiness
    } else {
      interests.append(Interest(descriptor: descriptor, readiness: readiness, wasClosed: false))
    }
  }

  func opened(_ descriptor: Int32, by transfer: Transfer) {
    socketEvents.append(.opened(descriptor, by: transfer))
    opened.append(transfer)
    live.opened(descriptor)
  }

  func closed(_ descriptor: Int32) {
    live.closed(descriptor)
    socketEvents.append(.closed(descriptor))
    if !newConnections.isEmpty { newConnections.closed(descriptor) }
    setInterest(descriptor, [])
    if let index = interests.firstIndex(where: { $0.descriptor == descriptor }) {
      interests[index].wasClosed = true
    }
  }

  /// Whether interests or socket events wait to be applied.
  var hasSocketChanges: Bool { !interests.isEmpty || !socketEvents.isEmpty }

  /// Clears the interests and the socket events, which have been applied.
  func removeSocketChanges() {
    interests.removeAllOfTurn()
    socketEvents.removeAllOfTurn()
  }

  /// Drops the transfers: nothing acts on them any more, and they refer back to the owner of the state.
  func removeTransfers() {
    opened = []
    ready = []
    touched = []
    receiving = ReceivingTurn()
  }
}

extension Array {
  /// Removes all elements and keeps the capacity. For at most one element, as in most turns, this costs a
  /// third of `removeAll(keepingCapacity:)`.
  mutating func removeAllOfTurn() {
    switch count {
    case 0: break
    case 1: removeLast()
    default: removeAll(keepingCapacity: true)
    }
  }
}
