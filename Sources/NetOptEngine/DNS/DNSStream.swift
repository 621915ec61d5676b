import Glibc

/// The messages on a TCP connection to a name server. Each message follows its length in two octets (RFC
/// 1035, section 4.2.2). The stream collects a message, checks it, and passes it to c-ares in portions.
///
/// The stream reads no octet after the end of a message, so the socket stays readable while another message
/// waits.
struct DNSStream {
  /// The outcome of a read.
  enum Progress {
    /// A message is complete, and its names are bounded.
    case whole
    /// The peer has closed the connection.
    case ended
    /// The read gave no message. The value is the errno for c-ares: EAGAIN while a part of the message has
    /// not arrived, ECONNRESET from the refusal of a message on, or another error of recv(2).
    case failed(Int32)
  }

  /// The two octets of the length and the octets of the message. Has room for the message once the length is
  /// known.
  private var octets: [UInt8] = [0, 0]
  /// The number of received octets in `octets`, the two octets of the length included.
  private var received = 0
  /// The number of octets passed to c-ares, the two octets of the length included.
  private var copied = 0
  /// Whether the stream has refused a message, because its names are not bounded. The connection is not read
  /// any further.
  private var hasRefused = false

  /// Whether the stream holds a complete, checked message that c-ares has not taken to its end.
  private(set) var isWhole = false

  /// Reads from the socket until a message is complete or no more data is available, and checks the message.
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
      // At most 64 KiB. c-ares allocates the same amount again.
      if received == 2 { octets += repeatElement(0, count: Int(octets[0]) << 8 | Int(octets[1])) }
    }
    guard DNSMessage.hasBoundedNames(octets.span.extracting(2..<octets.count)) else {
      // ECONNRESET makes c-ares give up the connection and go on to the next name server.
      hasRefused = true
      return .failed(ECONNRESET)
    }
    isWhole = true
    return .whole
  }

  /// Copies the next octets of a complete message to a buffer.
  ///
  /// - Returns: the number of copied octets.
  mutating func copy(to buffer: UnsafeMutableRawBufferPointer) -> Int {
    let end = min(octets.count, copied + buffer.count)
    buffer.copyBytes(from: octets[copied..<end])
    let count = end - copied
    copied = end
    if copied == octets.count { self = DNSStream() }
    return count
  }
}
