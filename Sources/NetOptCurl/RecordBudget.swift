/// How many TLS records of an HTTP/2 connection libcurl may read before it has looked after all of the connection's streams.
///
/// Before 8.1.0 libcurl has one buffer for each stream. When data does not fit into one of them, it stops in the middle of what it has
/// read, and until it goes on it takes every stream that has ended for whole, also one that was reset (`cf_h2_recv` in lib/http2.c).
/// So libcurl gets no more between two looks than fits into any of the buffers. What stands for the end of the connection comes alone: a
/// stream that was reset is taken for whole as well when libcurl reads the connection's end before it has looked after the stream.
///
/// A pure state machine. Records are counted as they are on the wire: RFC 8446, section 5.1.
struct RecordBudget {
  /// The size of a stream's buffer (CURLOPT_BUFFERSIZE(3)): for `shared` bytes of data, and a head.
  static let streamBuffer = 96 * 1024
  /// What may be read in a turn when several streams use the connection: more than the largest record.
  static let shared = 64 * 1024
  /// What may be read in a turn otherwise. A server that sends without end is interrupted there.
  static let single = 256 * 1024
  /// So much without anything for a request in it is a flood. Of a response that was cancelled as much as libcurl's window, 32 MiB, may
  /// still be on its way.
  static let unclaimed = 64 * 1024 * 1024

  /// How many streams use the connection. Without any there is nothing that a record can spoil.
  var streams = 0
  /// Whether this libcurl needs all of this, or only the limit of `single`.
  let isStrict: Bool

  /// How many bytes of records were read since the turn began.
  private(set) var used = 0
  /// How many were read since a request was given something of them.
  private var unclaimed = 0

  private var headerCount = 0
  private var type: UInt8 = 0
  private var length = 0
  private var missing = 0

  init(isStrict: Bool) { self.isStrict = isStrict }

  /// Whether a part of a record was read, and not all of it.
  var isInRecord: Bool { headerCount > 0 }

  /// Whether the connection may be read from, at the place where it is.
  var mayRead: Bool {
    if streams == 0 { return true }
    // The rest of a record has been allowed with its beginning.
    if headerCount == 5, missing < length { return true }
    if used == 0 { return true }
    guard headerCount == 5 else { return used < limit }
    return used + length <= limit && !(isStrict && mayBeTheEnd)
  }

  private var limit: Int { isStrict && streams > 1 ? Self.shared : Self.single }

  /// Whether the record may be close_notify. In TLS 1.3 it looks like data (RFC 8446, section 5.2): two bytes, a type and a tag, which
  /// no frame of HTTP/2 is short enough for.
  private var mayBeTheEnd: Bool { type == 21 || length < 9 + 17 }

  /// Whether the end of the connection may be read.
  var mayEnd: Bool { !isStrict || streams == 0 || used == 0 }

  /// Whether the server sends on and on what is for no request.
  var isFlooded: Bool { unclaimed > Self.unclaimed }

  /// A request was given a part of its response.
  mutating func claimed() { unclaimed = 0 }

  /// libcurl has looked after all streams.
  mutating func beginTurn() { used = 0 }

  /// Bytes were read from the connection.
  mutating func read(_ bytes: UnsafeRawBufferPointer) {
    var place = 0
    while place < bytes.count {
      if headerCount < 5 {
        let byte = bytes[place]
        switch headerCount {
        case 0: type = byte
        case 3: length = Int(byte) << 8
        case 4: length |= Int(byte)
        default: break
        }
        headerCount += 1
        place += 1
        missing = length
      } else {
        let count = min(missing, bytes.count - place)
        missing -= count
        place += count
      }
      if headerCount == 5, missing == 0 { readRecord() }
    }
  }

  private mutating func readRecord() {
    used += length
    unclaimed += length
    headerCount = 0
  }
}
