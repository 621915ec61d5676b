import Glibc

/// A connection to a name server over TCP: one message after the other, each with its length in two octets in front (RFC 1035,
/// section 4.2.2). A message is kept until it is whole and looked at, and given out then.
///
/// It reads no octet beyond a message. So what it has not read yet keeps the socket readable.
struct DNSStream {
  /// What came of reading.
  enum Progress {
    /// There is a whole message, whose names are bounded.
    case whole
    /// The peer has closed the connection.
    case ended
    /// errno: EAGAIN when more has to come, ECONNRESET for ever after a message that was refused.
    case failed(Int32)
  }

  /// The length and, as soon as that is known, the message.
  private var octets: [UInt8] = [0, 0]
  private var received = 0
  private var given = 0
  private var hasRefused = false

  /// Whether there is a message to give out.
  private(set) var isWhole = false

  /// Reads until a message is whole, or nothing more has come.
  mutating func read(from descriptor: Int32) -> Progress {
    if hasRefused { return .failed(ECONNRESET) }
    while received < octets.count {
      let count = octets.withUnsafeMutableBytes { bytes in
        let rest = UnsafeMutableRawBufferPointer(rebasing: bytes[received...])
        return recv(descriptor, rest.baseAddress, rest.count, 0)
      }
      guard count >= 0 else { return .failed(errno) }
      if count == 0 { return .ended }
      received += count
      // At most 64 KiB, and c-ares takes as much for it.
      if received == 2 { octets += repeatElement(0, count: Int(octets[0]) << 8 | Int(octets[1])) }
    }
    guard DNSMessage.hasBoundedNames(octets.span.extracting(2..<octets.count)) else {
      // There is no order in what comes behind it that anyone could rely on.
      hasRefused = true
      return .failed(ECONNRESET)
    }
    isWhole = true
    return .whole
  }

  /// Gives out the next octets of a whole message.
  ///
  /// - Returns: how many.
  mutating func give(to buffer: UnsafeMutableRawBufferPointer) -> Int {
    let end = min(octets.count, given + buffer.count)
    buffer.copyBytes(from: octets[given..<end])
    let count = end - given
    given = end
    if given == octets.count { self = DNSStream() }
    return count
  }
}
