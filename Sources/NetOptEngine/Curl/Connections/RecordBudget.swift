/// Limits how much libcurl reads of an HTTP/2 connection at a time, and finds connections on which a server sends what is for no request.
///
/// A pure state machine. It counts bytes as they are on the wire, and knows the records among them: RFC 8446, section 5.1.
struct RecordBudget {
  /// What may be read in a turn. libcurl reads as long as something comes, while everything else on its loop waits.
  static let limit = 256 * 1024
  /// So much without anything for a request in it is a flood. Of a response that was cancelled as much as libcurl's window, 32 MiB, may
  /// still be on its way.
  static let unclaimed = 64 * 1024 * 1024

  /// What a read counts for at least in a turn, in bytes: a few bytes can be much work, as a change of keys or a record of one byte is.
  static let leastCost = 512
  /// What a state change of TLS counts for behind the handshake, in bytes. Reading a session ticket makes three. A ticket has about 20 bytes, and
  /// takes as long as 6 KiB of data.
  static let stateChangeCost = 2 * 1024

  /// How many streams use the connection.
  var streams = 0

  /// How many bytes were read since the turn began.
  private var used = 0
  /// How many were read since a request was given something of them.
  private var unclaimed = 0

  /// How many bytes were read.
  private(set) var position = 0
  /// Where the record began of which something was read last: how many bytes of the socket came before it.
  private(set) var recordStart = 0

  private var headerCount = 0
  private var length = 0
  private var missing = 0

  /// Whether a part of a record was read, and not all of it.
  var isInRecord: Bool { headerCount > 0 }

  /// Whether more may be read in this turn.
  var mayRead: Bool { used < Self.limit }

  /// Whether the server sends on and on what is for no request.
  var isFlooded: Bool { unclaimed > Self.unclaimed }

  /// A request was given a part of its response.
  mutating func claimed() { unclaimed = 0 }

  /// Others have had their turn.
  mutating func beginTurn() { used = 0 }

  /// TLS has changed its state behind the handshake.
  mutating func chargeStateChange() {
    used += Self.stateChangeCost
    unclaimed += Self.stateChangeCost
  }

  /// Bytes were read from the connection.
  ///
  /// - Parameter outer: where the record began that they are in, when TLS lies in TLS; `nil` when they come from the socket.
  mutating func read(_ bytes: UnsafeRawBufferPointer, in outer: Int? = nil) {
    let start = position
    used += max(bytes.count, Self.leastCost)
    unclaimed += bytes.count
    position += bytes.count
    // OpenSSL asks for a record's header, and then for the rest of it: nearly always it gets just that.
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
    var place = 0
    while place < bytes.count {
      if headerCount < 5 {
        let byte = bytes[place]
        switch headerCount {
        case 0: recordStart = outer ?? start + place
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
      if headerCount == 5, missing == 0 { headerCount = 0 }
    }
  }
}
