import NetOptEventLoop

/// How much of one turn of the loop goes into undoing content codings.
///
/// A decoder may take 200 ns for each byte that comes (`ContentDecoder`), and libcurl hands over all that has come on a socket. With many such bodies
/// one turn would take seconds, and every deadline would be as late.
struct DecodingTurn {
  /// The most time, in nanoseconds. 20 ms are several megabytes of a usual body.
  private static let longest: Int64 = 20_000_000

  /// How long decoding has taken in this turn, in nanoseconds.
  var spent: Int64 = 0
  /// The transfers that wait for a later turn, in the order in which they are to go on.
  var waiting: [Transfer] = []
  /// Fires in the next turn.
  var timer: DecodingTimer?

  /// Whether no more is to be decoded in this turn.
  var isOver: Bool { spent >= Self.longest }
}

/// Fires when bodies that waited for another turn may be decoded.
final class DecodingTimer: LoopTimer {
  private unowned let multi: CurlMulti

  init(_ multi: CurlMulti) {
    self.multi = multi
    super.init()
  }

  override func fire() { multi.onLoop(()) { multi, _ in multi.decodeOn() } }
}

extension CurlMulti {
  /// The turn ends.
  func endDecodingTurn() {
    records.decoding.spent = 0
    guard !records.decoding.waiting.isEmpty else { return }
    let timer = records.decoding.timer ?? DecodingTimer(self)
    records.decoding.timer = timer
    // Timers alone cannot keep the loop: that is the next turn.
    loop.schedule(timer, at: loop.now())
  }

  /// Lets transfers go on that wait for their turn, until it is used up: one at least.
  fileprivate func decodeOn() {
    records.decoding.spent = 0
    var waiting: [Transfer] = []
    swap(&waiting, &records.decoding.waiting)
    for (index, transfer) in waiting.enumerated() {
      if records.decoding.isOver {
        // Those that have just been given some wait behind those that have not.
        records.decoding.waiting = waiting[index...] + records.decoding.waiting
        break
      }
      transfer.waitsToDecode = false
      guard transfer.exchange.winner === transfer else { continue }
      unpause(transfer.exchange, receive: true, send: false)
    }
    askForTurnEnd()
  }
}

extension Transfer {
  /// Pauses until a later turn.
  func waitToDecode() -> Reception {
    waitsToDecode = true
    records.decoding.waiting.append(self)
    return pause()
  }
}
