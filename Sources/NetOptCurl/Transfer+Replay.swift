import CCurl
import NetOptCore

// What became of a request that has no answer, and whether it may be sent again whatever its method (docs/adr/0026).

extension Transfer {
  /// What the server may have made of the request.
  private var fate: SentRequest.Fate {
    guard let speaksHTTP2 else { return .unknown }
    guard speaksHTTP2 else { return sent.fate(on: .http1) }
    return sent.fate(on: FrameObserver.seesRequests ? .http2(lastStream: connection?.lastStream) : .unseen)
  }

  /// How the request was lost, when it was.
  var loss: RequestLoss {
    RequestLoss(
      fate: fate, wasLeaving: connection?.lastStream != nil,
      hasStream: exchange.request.body.isStream && sentBytes > 0,
      sends: exchange.sends)
  }

  /// Has the race take the request back, when it was not processed and its body can begin anew.
  ///
  /// - Returns: whether it may be sent again.
  func takeBack() -> Bool {
    guard sentBytes == 0 || !exchange.request.body.isStream else { return false }
    let fate = fate
    guard fate.isSafe, exchange.race.takeBack(from: leg, atMost: fate.mostReturns) else { return false }
    exchange.isWon = false
    return true
  }
}
