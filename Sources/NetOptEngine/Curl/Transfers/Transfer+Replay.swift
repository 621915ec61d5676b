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
      fate: fate, wasSilent: connection?.isSilent == true, wasLeaving: connection?.lastStream != nil,
      sending: exchange.sending)
  }

  /// Whether the request is at a connection of HTTP/2 that has not begun to write it. The head is not subject to flow control: the server's limit
  /// of streams is reached, or the connection is full of other bytes.
  var waitsForStream: Bool { verdict == .send && speaksHTTP2 == true && fate == .unwritten }

  /// Whether the server refused it, and libcurl has not come to the gate with it again: it may wait for a connection.
  var waitsAfterRefusal: Bool { verdict == .send && (fate == .refused || fate == .overLimit) }

  /// What is said of a server that takes no request on a connection.
  static let noStream = "allowed no stream for the request (SETTINGS_MAX_CONCURRENT_STREAMS)"

  /// Has the race take the request back, when it was not processed and its body can begin anew.
  ///
  /// - Returns: whether it may be sent again.
  func takeBack() -> Bool {
    let fate = fate
    guard fate.isSafe, exchange.race.winner == leg, exchange.upload?.canRewind ?? true,
      exchange.returns.add(fate, from: leg), exchange.upload?.rewind() ?? true
    else { return false }
    exchange.race.takeBack(from: leg)
    exchange.state.takeBack()
    return true
  }
}
