/// The time that one turn of the loop spends on receiving bodies, and the limit of this time.
///
/// libcurl reads a socket up to a hundred times in one call; before 8.1.0, it reads up to 128 KiB each time.
/// A decoder may spend 200 ns on each byte (`ContentDecoder`), and libcurl may deliver a body in pieces of a
/// single byte. Without a limit, many such bodies make one turn last seconds, and delay every deadline by as
/// much.
struct ReceivingTurn {
  /// The limit of `spent` in nanoseconds, which is partly an estimate. A typical decoder produces several
  /// megabytes within it. Without a decoder, it is enough for 40,000 pieces.
  private static let longest: Int64 = 20_000_000
  /// The estimated time that libcurl and netopt spend on one piece of a body, without decoding, in
  /// nanoseconds.
  private static let timePerPiece: Int64 = 500
  /// The estimated time for one byte of chunk framing (sizes, extensions and line ends), in nanoseconds.
  private static let timePerFramingByte: Int64 = 20

  /// The time that bodies have taken in this turn, in nanoseconds: an estimate for pieces and framing, plus
  /// the time that decoders measured.
  var spent: Int64 = 0
  /// The transfers that are paused until a later turn, in the order in which they continue.
  var waiting: [Transfer] = []
  /// Fires in the next turn, and lets the waiting transfers continue. Made when it is first needed.
  var timer: MultiTimer?

  /// Whether the turn's time for bodies is used up.
  var isOver: Bool { spent >= Self.longest }

  /// Adds the estimated time for one piece of a body.
  mutating func chargePiece() { spent += Self.timePerPiece }

  /// Adds the estimated time for `count` bytes of chunk framing.
  mutating func read(framing count: Int) { spent += Int64(count) * Self.timePerFramingByte }
}

extension CurlMulti {
  /// Ends the turn: resets the time, and schedules the waiting transfers for the next turn.
  func endReceivingTurn() {
    callbackState.receiving.spent = 0
    guard !callbackState.receiving.waiting.isEmpty else { return }
    let timer = callbackState.receiving.timer ?? MultiTimer(self) { $0.receiveWaiting() }
    callbackState.receiving.timer = timer
    // The timer is due at once and fires in the next turn, after the loop has read the other sockets.
    loop.schedule(timer, at: loop.now())
  }

  /// Lets waiting transfers continue until the turn's time is used up. At least one continues.
  private func receiveWaiting() {
    callbackState.receiving.spent = 0
    var waiting: [Transfer] = []
    swap(&waiting, &callbackState.receiving.waiting)
    for (index, transfer) in waiting.enumerated() {
      if callbackState.receiving.isOver {
        // Transfers that have just received data wait behind those that have not.
        callbackState.receiving.waiting = waiting[index...] + callbackState.receiving.waiting
        break
      }
      transfer.waitsForTurn = false
      guard transfer.exchange.winner === transfer else { continue }
      unpause(transfer.exchange, receive: true, send: false)
    }
    requestTurnEnd()
  }
}

extension Transfer {
  /// Pauses the transfer until a later turn, because the time for bodies is used up.
  func pauseUntilNextTurn() -> Reception {
    waitsForTurn = true
    callbackState.receiving.waiting.append(self)
    return pause()
  }
}
