/// How much of one turn of the loop goes into the pieces of bodies.
///
/// libcurl hands over all that has come on a socket, 1.6 MB at once. A decoder may take 200 ns for each byte of that (`ContentDecoder`), and pieces may have
/// one byte each. With many such bodies one turn would take seconds, and every deadline would be as late.
struct ReceivingTurn {
  /// The most time, in nanoseconds. 20 ms are several megabytes of a usual body that is decoded, and some hundred of another one.
  private static let longest: Int64 = 20_000_000
  /// What a piece counts for beside its decoding. It takes about as long, with what libcurl does for it.
  private static let timePerPiece: Int64 = 500
  /// What a byte of a chunk's size and extensions counts for.
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
