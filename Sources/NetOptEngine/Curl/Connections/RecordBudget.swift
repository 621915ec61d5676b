/// Limits how much libcurl reads from an HTTP/2 connection in one turn, and detects a server that keeps
/// sending data for no request.
///
/// A state machine without I/O. It counts the bytes that are read from the socket, and finds the TLS records
/// in them (RFC 8446, section 5.1). Each read has a cost in bytes, and the cost of all reads in a turn is
/// limited. The cost is the number of bytes read, or more for input that is expensive to process.
struct RecordBudget {
  /// The limit for the cost of the reads in a turn, in bytes. libcurl by itself reads as long as bytes
  /// arrive, and everything else on its loop waits meanwhile.
  static let limit = 256 * 1024
  /// The maximum number of bytes in a row without data for a request. A server that sends more floods the
  /// connection. After a response is cancelled, up to libcurl's window (32 MiB) of it may still arrive.
  static let mostUnclaimed = 64 * 1024 * 1024

  /// The minimum cost of a read, in bytes. A few bytes can cause much work, such as a key update or a record
  /// with one byte.
  static let leastCost = 512
  /// The cost of a TLS state change after the handshake, in bytes. Reading a session ticket makes three state
  /// changes. A ticket has about 20 bytes, and takes as long as 6 KiB of data.
  static let stateChangeCost = 2 * 1024

  /// The number of transfers that use the connection, each with one stream.
  var streams = 0

  /// The cost of the reads since the turn began, in bytes.
  private var used = 0
  /// The number of bytes read, plus the cost of state changes, since data last went to a request.
  private var unclaimed = 0

  /// The number of bytes read since the connection was opened.
  private(set) var position = 0
  /// Where the last record begins whose header was read, or is being read: the number of bytes before it on
  /// the socket. With TLS inside TLS, the position of the outer record in which the record begins.
  private(set) var recordStart = 0

  /// The number of bytes of the present record's header that were read, 0 to 5; 0 between records.
  private var headerCount = 0
  /// The length of the present record in bytes, without the header.
  private var length = 0
  /// How many of the record's `length` bytes have not been read.
  private var missing = 0

  /// Whether a part of a record was read and the rest was not.
  var isInRecord: Bool { headerCount > 0 }

  /// Whether more bytes may be read in this turn.
  var mayRead: Bool { used < Self.limit }

  /// Whether the server keeps sending data for no request.
  var isFlooded: Bool { unclaimed > Self.mostUnclaimed }

  /// Records that a request received a part of its response.
  mutating func claimed() { unclaimed = 0 }

  /// Begins a new turn, in which `limit` bytes of cost may be read again.
  mutating func beginTurn() { used = 0 }

  /// Adds the cost of a TLS state change after the handshake.
  mutating func chargeStateChange() {
    used += Self.stateChangeCost
    unclaimed += Self.stateChangeCost
  }

  /// Records bytes that were read from the connection.
  ///
  /// - Parameter outer: with TLS inside TLS, where on the socket the outer record with the bytes begins;
  ///   `nil` if the bytes come directly from the socket.
  mutating func read(_ bytes: UnsafeRawBufferPointer, in outer: Int? = nil) {
    let start = position
    used += max(bytes.count, Self.leastCost)
    unclaimed += bytes.count
    position += bytes.count
    // OpenSSL asks for the header of a record, then for the rest, and nearly always gets exactly that.
    if headerCount == 5, bytes.count == missing {
      headerCount = 0
      return
    }
    if headerCount == 0, bytes.count == 5 {
      recordStart = outer ?? start
      length = Int(bytes[3]) << 8 | Int(bytes[4])
      missing = length
      headerCount = length == 0 ? 0 : 5
      return
    }
    var offset = 0
    while offset < bytes.count {
      if headerCount < 5 {
        let byte = bytes[offset]
        switch headerCount {
        case 0: recordStart = outer ?? start + offset
        case 3: length = Int(byte) << 8
        case 4: length |= Int(byte)
        default: break
        }
        headerCount += 1
        offset += 1
        missing = length
      } else {
        let count = min(missing, bytes.count - offset)
        missing -= count
        offset += count
      }
      if headerCount == 5, missing == 0 { headerCount = 0 }
    }
  }
}
