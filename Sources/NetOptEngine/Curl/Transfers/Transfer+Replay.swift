import CCurl
import NetOptCore

// The fate of a request without a response: if the server did not process it, netopt may send it again,
// whatever its method (docs/adr/0026).

extension Transfer {
  /// Whether the server may have processed the request, and if not, how netopt knows.
  private var fate: SentRequest.Fate {
    guard let speaksHTTP2 else { return .unknown }
    guard speaksHTTP2 else { return sent.fate(on: .http1) }
    return sent.fate(
      on: FrameObserver.observesRequests ? .http2(lastStream: connection?.lastStream) : .unseen)
  }

  /// What is known about the request's fate at this moment, as if its connection had just ended.
  var loss: RequestLoss {
    RequestLoss(
      fate: fate, wasSilent: connection?.isSilent == true, wasLeaving: connection?.lastStream != nil,
      sending: exchange.sending)
  }

  /// Whether the request waits on an HTTP/2 connection, and no byte of the request was written. Flow control
  /// does not delay the head of a request. So the wait has one of two causes: the server's limit of streams
  /// is reached, or other bytes fill the connection.
  var waitsForStream: Bool { verdict == .send && speaksHTTP2 == true && fate == .unwritten }

  /// Whether the server refused the request's stream, and libcurl has not brought the request to the gate
  /// again. libcurl may be waiting for another connection.
  var waitsAfterRefusal: Bool { verdict == .send && (fate == .refused || fate == .overLimit) }

  /// The end of a message about a server that allows no stream on a connection. The name of the peer precedes
  /// this text.
  static let noStream = "allowed no stream for the request (SETTINGS_MAX_CONCURRENT_STREAMS)"

  /// Takes the request back from the leg if the server did not process it and its body can be sent from the
  /// start.
  ///
  /// - Returns: whether the race took the request back. The leg may then send it again.
  func withdrawRequest() -> Bool {
    let fate = fate
    guard fate.isUnprocessed, exchange.race.winner == leg, exchange.upload?.canRewind ?? true,
      exchange.replayCounts.add(fate, from: leg), exchange.upload?.rewind() ?? true
    else { return false }
    exchange.race.withdrawRequest(from: leg)
    exchange.state.withdrawRequest()
    return true
  }
}
