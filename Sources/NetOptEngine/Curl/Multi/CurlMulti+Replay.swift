import CCurl
import NetOptCore

// Resends: what netopt does when the gate refuses a connection, or when a connection ends before the response
// begins (docs/adr/0022, docs/adr/0026).

extension CurlMulti {
  /// Acts on a leg whose connection the gate refused. If the refusal allows that, the leg continues on
  /// another connection. Otherwise the leg fails. No byte of the request was written on the refused
  /// connection.
  func gateRefused(_ transfer: Transfer, _ refusal: GateRefusal) {
    let exchange = transfer.exchange
    let clientRefusal = CurlCode.clientRefusal(by: transfer.peer, of: transfer)
    end(transfer)
    guard exchange.race.maySend(transfer.leg) else { return }
    if let clientRefusal, exchange.sends > 0, refusal.mayReconnect {
      // The leg had sent its request on this connection. The server would refuse the client on every other
      // one.
      exchange.setReport(of: transfer.leg) { $0.failure = LegFailure(.tls, clientRefusal) }
      return fail(
        exchange, NetOptError(.tlsFailed, phase: .tls, clientRefusal, endpoint: transfer.endpoint))
    }
    var failure = (
      failure: LegFailure(
        .reset,
        refusal == .ended
          ? "\(transfer.peer) closed the connection before it received a request"
          : "\(transfer.peer) sent a response before it received a request"),
      endpoint: transfer.endpoint
    )
    if refusal.mayReconnect {
      // The new transfer opens a connection. Exception: after a first refusal, because the connection was
      // leaving or given up, it may use another open one. libcurl does not give out the refused one again.
      let opensNew = !refusal.mayReuseOther || exchange.wasGivenUselessConnection
      exchange.wasGivenUselessConnection = true
      let other = connect(
        transfer.leg, of: exchange, to: transfer.endpoint, through: transfer.proxy, opensNew: opensNew,
        at: loop.now())
      guard let other else { return }
      failure = other
    }
    guard exchange.race.winner == nil else {
      return resendFailed(exchange, from: transfer.peer, failure.failure, at: failure.endpoint)
    }
    exchange.setReport(of: transfer.leg) {
      $0.outcome = .failed
      $0.failure = failure.failure
      $0.ended = loop.now() - exchange.context.started
    }
    follow(exchange.race.failed(transfer.leg), in: exchange)
  }

  /// Ends an attempt whose winner had sent the request, lost the connection before the response began, and
  /// could not open another connection. A race with a winner starts no other leg. The error has the code
  /// `sendFailed`. It is retryable if the request may be repeated, so that a retry can send the request to
  /// another endpoint.
  ///
  /// - Parameters:
  ///   - peer: the endpoint, in words for users.
  ///   - failure: why the leg could not open another connection.
  func resendFailed(_ exchange: Exchange, from peer: String, _ failure: LegFailure, at endpoint: IPEndpoint?)
  {
    // The race, the loss and the refusal may all come in one turn of the loop. Then `reachedGate` has not
    // reported the win.
    if let winner = exchange.race.winner {
      exchange.setReport(of: winner) { ($0.outcome, $0.failure) = (.won, failure) }
    }
    exchange.context.attempt?.recordSend(to: endpoint)
    fail(
      exchange,
      NetOptError(
        .sendFailed, phase: .send, CurlCode.notReplaced(peer, failure), endpoint: endpoint,
        isRetryable: exchange.request.mayBeRepeated))
  }

  /// Takes the request back from the leg if the server did not process it and the leg may send it again.
  ///
  /// - Returns: whether the race took the request back. The caller then calls `sendAgain`.
  func withdrawIfUnprocessed(_ transfer: Transfer, _ code: CURLcode) -> Bool {
    guard mayBeUnprocessed(transfer, code) else { return false }
    return transfer.withdrawRequest()
  }

  /// Whether a transfer failed because its connection or stream ended, and not because of a faulty response
  /// or a failed body stream. The server may then have left the request unprocessed. False if the server
  /// refused the client certificate, because it would refuse it on every connection.
  func mayBeUnprocessed(_ transfer: Transfer, _ code: CURLcode) -> Bool {
    CurlCode.mayLeaveUnprocessed(code) && transfer.fault == nil && transfer.exchange.upload?.failure == nil
      && transfer.easy.errorText.clientCertificateAlert == nil
  }

  /// Sends an unprocessed request again: the same leg gets a new transfer on another connection. If libcurl
  /// already tried to open another connection and failed, the leg has failed, and the next leg sends the
  /// request.
  func sendAgain(_ transfer: Transfer, after code: CURLcode) {
    let exchange = transfer.exchange
    if CurlCode.isReplacementFailure(code) { return legFailed(transfer, code) }
    end(transfer)
    let failure = connect(
      transfer.leg, of: exchange, to: transfer.endpoint, through: transfer.proxy, at: loop.now())
    guard failure != nil else { return }
    follow(exchange.race.failed(transfer.leg), in: exchange)
  }

  /// Takes an unprocessed request back from its leg, and fails the leg. Callers use this when the leg should
  /// not send the request again, for example because it has done so too often. The next leg sends the request.
  /// If there is no next leg, the attempt fails.
  ///
  /// - Parameters:
  ///   - loss: how the request was lost.
  ///   - failure: the failure to report for the leg; by default the failure that `loss` describes.
  /// - Returns: whether the race has taken the request back. If not, nothing has changed.
  func reassign(_ transfer: Transfer, after loss: RequestLoss, because failure: LegFailure? = nil) -> Bool {
    let exchange = transfer.exchange
    guard loss.fate.isUnprocessed, exchange.race.winner == transfer.leg,
      exchange.upload?.rewind() ?? true
    else { return false }
    exchange.race.withdrawRequest(from: transfer.leg)
    exchange.state.withdrawRequest()
    note(transfer, .failed, failure ?? loss.failure(at: transfer.peer))
    end(transfer)
    follow(exchange.race.failed(transfer.leg), in: exchange)
    return true
  }

  /// The error of a call whose connection ended before the response, and whose request may not be sent a
  /// second time. libcurl was about to send it again, and the gate ended the transfer.
  func replayError(of transfer: Transfer, _ code: CURLcode) -> NetOptError {
    let loss = transfer.lastLoss
    let errorText = transfer.easy.errorText
    let usual = "the connection to \(transfer.peer) \(errorText.ending) before the response began"
    let why =
      if loss.fate.isUnprocessed {
        ""
      } else if !transfer.exchange.request.body.isRepeatable {
        ", and the request was not sent again, because its body is a stream"
      } else {
        ", and the request was not sent again, because netopt repeats \(transfer.exchange.request.method) only with an Idempotency-Key"
      }
    return NetOptError(
      .sendFailed, phase: .send, loss.description(at: transfer.peer, usual: usual) + why,
      endpoint: transfer.endpoint, underlying: CurlCode.underlying(code, errorText))
  }
}
