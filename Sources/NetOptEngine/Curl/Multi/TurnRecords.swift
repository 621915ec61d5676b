import CCurl

/// What libcurl's callbacks have to say in one turn of the loop. Confined to the loop's thread; written only while
/// libcurl is at work, read and emptied only when it is not.
final class TurnRecords {
  /// What is wanted of one descriptor in the end.
  struct Interest {
    let descriptor: Int32
    /// What it is to be watched for; empty for not at all.
    var readiness: Readiness
    /// Whether the descriptor was closed in between: the number then means another socket than before.
    var wasClosed: Bool
  }

  /// What became of a socket.
  enum SocketEvent {
    case opened(Int32, by: Transfer)
    case closed(Int32)
  }

  // Unchecked exclusivity: see CurlMulti.
  @exclusivity(unchecked) private(set) var interests: [Interest] = []
  /// In the order in which it happened: a number may be opened, closed and opened again in one turn.
  @exclusivity(unchecked) private(set) var socketEvents: [SocketEvent] = []
  /// Transfers that opened a socket.
  @exclusivity(unchecked) var opened: [Transfer] = []
  /// Transfers that came to the gate.
  @exclusivity(unchecked) var ready: [Transfer] = []
  /// Transfers that received something, or paused.
  @exclusivity(unchecked) var touched: [Transfer] = []
  /// What was opened of late and has carried no request: kept here, as callbacks have to do with it.
  @exclusivity(unchecked) var newConnections = NewConnections()
  /// What the gate has to know of the connections that are open.
  @exclusivity(unchecked) var live = LiveConnections()
  @exclusivity(unchecked) var receiving = ReceivingTurn()
  /// What libcurl wants its timer set to, in milliseconds: -1 for off, `nil` for no change.
  @exclusivity(unchecked) var timeout: Int?

  /// Hands the records to a callback of libcurl.
  ///
  /// Unsafe: they live as long as the multi handle that calls, and are not retained.
  ///
  /// - Parameter data: the callback's user data.
  static func reached(by data: UnsafeMutableRawPointer, _ body: (TurnRecords) -> Void) {
    Unmanaged<TurnRecords>.fromOpaque(data)._withUnsafeGuaranteedRef(body)
  }

  func wants(_ descriptor: Int32, _ readiness: Readiness) {
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
    wants(descriptor, [])
    if let index = interests.firstIndex(where: { $0.descriptor == descriptor }) {
      interests[index].wasClosed = true
    }
  }

  /// Whether there are interests, or news of sockets, to be acted on.
  var concernSockets: Bool { !interests.isEmpty || !socketEvents.isEmpty }

  /// Tells that interests and what became of sockets have been acted on.
  func applied() {
    interests.removeAllOfTurn()
    socketEvents.removeAllOfTurn()
  }

  /// Forgets the transfers: nobody will act on them any more, and they lead back to the owner of the records.
  func removeTransfers() {
    opened = []
    ready = []
    touched = []
    receiving = ReceivingTurn()
  }
}

extension Array {
  /// Removes all elements and keeps the room. Of none or one, as most turns have, it does so at a third of what
  /// `removeAll(keepingCapacity:)` costs.
  mutating func removeAllOfTurn() {
    switch count {
    case 0: break
    case 1: removeLast()
    default: removeAll(keepingCapacity: true)
    }
  }
}
