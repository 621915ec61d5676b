import Glibc
import NetOptCore
import NetOptTestSupport

/// A client's connection through a splice, with the splice's connection to the server. Only the splice's
/// thread uses it.
final class ProxiedConnection {
  /// One of the two sides: the connection to the client, or the connection to the server.
  struct Side {
    /// The socket of this side.
    var descriptor: Int32
    /// The bytes from the other side that still have to be sent to this side.
    var outgoing: [UInt8] = []
    /// Whether the peer at this side has sent its FIN.
    var hasEnded = false
    /// Whether a FIN was sent to this side, because the peer at the other side had sent its FIN.
    var isShut = false
    /// The number of bytes received from this side so far.
    var received = 0
    /// The epoll events for which the socket is watched; `nil` when it is not watched yet.
    var interest: UInt32?
  }

  /// The splice stops reading from one side while at least this many bytes wait in `outgoing` of the other
  /// side.
  private static let mostHeld = 65_536

  /// The number of the connection, from 0.
  let number: Int
  /// The index of the frontend that accepted the connection.
  let frontend: Int
  /// The client's side.
  var client: Side
  /// The server's side; `nil` until the server is known.
  var server: Side?
  /// The first bytes of the client, collected until they contain the server name.
  var hello: [UInt8] = []
  /// The fault to come; `nil` without one and once it has occurred.
  var fault: SpliceFault?
  /// Until when no byte passes, because of a stall; `nil` without a stall.
  var stalledUntil: MonotonicInstant?
  /// When the splice last received from either side; at first when the connection was accepted.
  var lastByte: MonotonicInstant
  /// When the connection was accepted.
  let opened: MonotonicInstant

  init(_ number: Int, frontend: Int, client: Int32, fault: SpliceFault?, at now: MonotonicInstant) {
    self.number = number
    self.frontend = frontend
    self.client = Side(descriptor: client)
    self.fault = fault
    opened = now
    lastByte = now
  }

  /// Whether both directions have ended, so that the connection can be closed.
  var isOver: Bool { client.isShut && (server?.isShut ?? true) }

  /// Whether the splice should now read from a side.
  ///
  /// - Parameter other: the other side, which gets the bytes; `nil` until the server is known.
  func wantsRead(from side: Side, to other: Side?) -> Bool {
    !side.hasEnded && stalledUntil == nil && (other?.outgoing.count ?? 0) < Self.mostHeld
  }

  /// Whether the splice should now send bytes to a side.
  func wantsWrite(to side: Side) -> Bool { !side.outgoing.isEmpty && stalledUntil == nil }

  /// The due time of the fault. For `idle`, each byte moves it to a later time. `nil` without a fault, for a
  /// fault after a number of bytes, and for `idle` until the server has sent a byte.
  var faultTime: MonotonicInstant? {
    switch fault?.moment {
    case .age(let age): opened + age
    case .idle(let time): (server?.received ?? 0) > 0 ? lastByte + time : nil
    case .clientBytes, .serverBytes, nil: nil
    }
  }

  /// Whether the number of bytes after which the fault occurs has arrived.
  var hasReachedFaultBytes: Bool {
    switch fault?.moment {
    case .clientBytes(let count): client.received >= count
    case .serverBytes(let count): (server?.received ?? 0) >= count
    case .age, .idle, nil: false
    }
  }

  /// Closes both sides.
  func close(byReset: Bool) {
    for descriptor in [client.descriptor, server?.descriptor].compactMap({ $0 }) {
      if byReset { LoopbackSocket.reset(descriptor) } else { Glibc.close(descriptor) }
    }
  }
}

extension ProxiedConnection.Side {
  /// The socket of the side has failed.
  enum Failure: Error { case broken }

  /// Receives the bytes that have arrived, at most 16 KiB. Sets `hasEnded` when the peer has sent its FIN.
  mutating func receive() throws(Failure) -> [UInt8] {
    var count = 0
    var code: Int32 = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: 16_384) { buffer, initialized in
      count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
      code = errno
      initialized = max(0, count)
    }
    if count == 0 { hasEnded = true }
    if count < 0, code != EAGAIN, code != EINTR { throw .broken }
    received += bytes.count
    return bytes
  }

  /// Sends as many bytes of `outgoing` as the socket accepts.
  mutating func send() throws(Failure) {
    guard !outgoing.isEmpty else { return }
    let count = outgoing.withUnsafeBytes {
      Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
    }
    if count < 0 {
      // A connection that is not established yet accepts no bytes.
      if errno == EAGAIN || errno == EINTR || errno == ENOTCONN { return }
      throw .broken
    }
    outgoing.removeFirst(count)
  }
}
