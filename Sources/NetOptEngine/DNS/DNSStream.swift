import Glibc

/// The messages on a TCP connection to a name server, each behind its length in two octets (RFC 1035, section 4.2.2). It collects a
/// message, checks it, and gives it out in portions.
///
/// It reads no octet beyond a message, so the socket stays readable while another one is there.
struct DNSStream {
  /// What came of reading.
  enum Progress {
    /// A message is whole, and its names are bounded.
    case whole
    /// The peer has closed the connection.
    case ended
    /// errno: EAGAIN while a part is missing; ECONNRESET after a refused message, for good.
    case failed(Int32)
  }

  /// The length and, once that is known, the message.
  private var octets: [UInt8] = [0, 0]
  /// How many of the octets have come.
  private var received = 0
  /// How many of the octets were given out.
  private var given = 0
  /// Whether a message was refused.
  private var hasRefused = false

  /// Whether a message can be given out.
  private(set) var isWhole = false

  /// Reads until a message is whole or the socket is empty.
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
      // At most 64 KiB. c-ares allocates as much again.
      if received == 2 { octets += repeatElement(0, count: Int(octets[0]) << 8 | Int(octets[1])) }
    }
    guard DNSMessage.hasBoundedNames(octets.span.extracting(2..<octets.count)) else {
      // A message cannot be left out: c-ares counts octets.
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
