import Glibc
import NetOptCore
import NetOptTestSupport

/// One connection through a splice. The splice's thread alone uses it.
final class Passage {
  /// A side of the connection.
  struct Side {
    var descriptor: Int32
    /// Bytes that came from the other side and were not taken by this one.
    var outgoing: [UInt8] = []
    /// Whether this side has sent its end.
    var hasEnded = false
    /// Whether the other side's end was passed on.
    var isShut = false
    /// How many bytes came from this side.
    var received = 0
    /// The events that the poller watches for.
    var interest: UInt32?
  }

  /// How much is held for a side that does not read.
  private static let mostHeld = 65_536

  let number: Int
  let door: Int
  var client: Side
  /// `nil` until the server is known.
  var server: Side?
  /// The first bytes of the client, until they name the server.
  var hello: [UInt8] = []
  var fault: SpliceFault?
  /// Until when nothing passes.
  var stalledUntil: MonotonicInstant?
  var lastByte: MonotonicInstant
  let opened: MonotonicInstant

  init(_ number: Int, door: Int, client: Int32, fault: SpliceFault?, at now: MonotonicInstant) {
    self.number = number
    self.door = door
    self.client = Side(descriptor: client)
    self.fault = fault
    opened = now
    lastByte = now
  }

  /// Whether both directions are over.
  var isOver: Bool { client.isShut && (server?.isShut ?? true) }

  func wantsRead(from side: Side, to other: Side?) -> Bool {
    !side.hasEnded && stalledUntil == nil && (other?.outgoing.count ?? 0) < Self.mostHeld
  }

  func wantsWrite(to side: Side) -> Bool { !side.outgoing.isEmpty && stalledUntil == nil }

  /// When the fault happens if no byte comes before; `nil` when only bytes bring it about.
  var faultTime: MonotonicInstant? {
    switch fault?.moment {
    case .age(let age): opened + age
    case .idle(let time): (server?.received ?? 0) > 0 ? lastByte + time : nil
    case .clientBytes, .serverBytes, nil: nil
    }
  }

  /// Whether the bytes that have come are those that the fault waits for.
  var faultBytesCame: Bool {
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

extension Passage.Side {
  enum Failure: Error { case broken }

  /// Takes what has come.
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

  /// Sends what can be sent.
  mutating func send() throws(Failure) {
    guard !outgoing.isEmpty else { return }
    let count = outgoing.withUnsafeBytes {
      Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
    }
    if count < 0 {
      // A connection that is not established yet takes nothing.
      if errno == EAGAIN || errno == EINTR || errno == ENOTCONN { return }
      throw .broken
    }
    outgoing.removeFirst(count)
  }
}
