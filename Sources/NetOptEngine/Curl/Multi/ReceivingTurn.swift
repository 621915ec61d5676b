/// How much of one turn of the loop goes into the pieces of bodies.
///
/// libcurl reads a socket up to a hundred times in one call, before 8.1.0 up to 128 KiB each time. A decoder may spend 200 ns on each byte (`ContentDecoder`), and
/// a piece may have a single byte. Without a limit, many such bodies make one turn last seconds, and delay every deadline by as much.
struct ReceivingTurn {
  /// The limit in nanoseconds. In 20 ms a usual decoder makes several megabytes; without a decoder, libcurl hands over hundreds of megabytes.
  private static let longest: Int64 = 20_000_000
  /// The time that one piece counts for, in nanoseconds, besides decoding: about what libcurl and netopt spend on it.
  private static let timePerPiece: Int64 = 500
  /// The time that one byte of a chunk's size line counts for, in nanoseconds.
  private static let timePerFramingByte: Int64 = 20

  /// How long bodies have taken in this turn, in nanoseconds.
  var spent: Int64 = 0
  /// The transfers that wait for a later turn, in the order in which they are to go on.
  var waiting: [Transfer] = []
  /// Fires in the next turn.
  var timer: MultiTimer?

  /// Whether nothing more is to be taken in this turn.
  var isOver: Bool { spent >= Self.longest }

  mutating func tookPiece() { spent += Self.timePerPiece }

  mutating func read(framing count: Int) { spent += Int64(count) * Self.timePerFramingByte }
}

extension CurlMulti {
  /// The turn ends.
  func endReceivingTurn() {
    records.receiving.spent = 0
    guard !records.receiving.waiting.isEmpty else { return }
    let timer = records.receiving.timer ?? MultiTimer(self) { $0.receiveOn() }
    records.receiving.timer = timer
    // Timers alone cannot keep the loop: that is the next turn.
    loop.schedule(timer, at: loop.now())
  }

  /// Lets transfers go on that wait for their turn, until it is used up: one at least.
  private func receiveOn() {
    records.receiving.spent = 0
    var waiting: [Transfer] = []
    swap(&waiting, &records.receiving.waiting)
    for (index, transfer) in waiting.enumerated() {
      if records.receiving.isOver {
        // Those that have just been given some wait behind those that have not.
        records.receiving.waiting = waiting[index...] + records.receiving.waiting
        break
      }
      transfer.waitsForTurn = false
      guard transfer.exchange.winner === transfer else { continue }
      unpause(transfer.exchange, receive: true, send: false)
    }
    askForTurnEnd()
  }
}

extension Transfer {
  /// Pauses until a later turn.
  func pauseUntilNextTurn() -> Reception {
    waitsForTurn = true
    records.receiving.waiting.append(self)
    return pause()
  }
}
