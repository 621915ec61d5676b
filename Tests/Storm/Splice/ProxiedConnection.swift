import Glibc
import NetOptCore
import NetOptTestSupport

/// One connection through a splice. Only the splice's thread uses it.
final class ProxiedConnection {
  /// One side of the connection.
  struct Side {
    var descriptor: Int32
    /// Bytes from the other side that are not yet sent to this side.
    var outgoing: [UInt8] = []
    /// Whether this side has sent its FIN.
    var hasEnded = false
    /// Whether the other side's FIN was passed on to this side.
    var isShut = false
    /// The number of bytes received from this side.
    var received = 0
    /// The events that the poller watches.
    var interest: UInt32?
  }

  /// The maximum number of bytes buffered for a side that does not read.
  private static let mostHeld = 65_536

  let number: Int
  let frontend: Int
  var client: Side
  /// The server's side; `nil` until the server is known.
  var server: Side?
  /// The first bytes of the client, collected until they contain the server name.
  var hello: [UInt8] = []
  var fault: SpliceFault?
  /// Until when the connection passes no bytes.
  var stalledUntil: MonotonicInstant?
  var lastByte: MonotonicInstant
  let opened: MonotonicInstant

  init(_ number: Int, frontend: Int, client: Int32, fault: SpliceFault?, at now: MonotonicInstant) {
    self.number = number
    self.frontend = frontend
    self.client = Side(descriptor: client)
    self.fault = fault
    opened = now
    lastByte = now
  }

  /// Whether both directions have ended.
  var isOver: Bool { client.isShut && (server?.isShut ?? true) }

  func wantsRead(from side: Side, to other: Side?) -> Bool {
    !side.hasEnded && stalledUntil == nil && (other?.outgoing.count ?? 0) < Self.mostHeld
  }

  func wantsWrite(to side: Side) -> Bool { !side.outgoing.isEmpty && stalledUntil == nil }

  /// When the fault occurs if no byte arrives before; `nil` when the fault depends on bytes only.
  var faultTime: MonotonicInstant? {
    switch fault?.moment {
    case .age(let age): opened + age
    case .idle(let time): (server?.received ?? 0) > 0 ? lastByte + time : nil
    case .clientBytes, .serverBytes, nil: nil
    }
  }

  /// Whether enough bytes have arrived to trigger the fault.
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
  enum Failure: Error { case broken }

  /// Receives the available bytes.
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

  /// Sends as many bytes as the socket accepts.
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
