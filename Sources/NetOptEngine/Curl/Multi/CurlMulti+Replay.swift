import CCurl
import NetOptCore

// Requests that continue on another connection than libcurl's first choice (docs/adr/0022, docs/adr/0026).

extension CurlMulti {
  /// Handles a leg whose connection the gate refused. Nothing was written on the connection.
  func wasRefused(_ transfer: Transfer, _ refusal: GateRefusal) {
    let exchange = transfer.exchange
    end(transfer)
    guard exchange.race.maySend(transfer.leg) else { return }
    var failure = (
      failure: LegFailure(
        .reset,
        refusal == .ended
          ? "\(transfer.peer) closed the connection before it received a request"
          : "\(transfer.peer) sent a response before it received a request"),
      endpoint: transfer.endpoint
    )
    if refusal.isOfTheConnection {
      // Other open connections may be usable. libcurl gives a connection that is leaving to no other
      // transfer.
      let opensNew = !refusal.mayHaveOthers || exchange.wasGivenUselessConnection
      exchange.wasGivenUselessConnection = true
      let other = connect(
        transfer.leg, of: exchange, to: transfer.endpoint, through: transfer.proxy, opensNew: opensNew,
        at: loop.now())
      guard let other else { return }
      failure = other
    }
    guard exchange.race.winner == nil else {
      // The request had been sent before, and was to be sent again.
      return fail(exchange, NetOptError(failure.failure, at: failure.endpoint))
    }
    exchange.setReport(of: transfer.leg) {
      $0.outcome = .failed
      $0.failure = failure.failure
      $0.ended = loop.now() - exchange.context.started
    }
    follow(exchange.race.failed(transfer.leg), in: exchange)
  }

  /// Whether a failed request was not processed and is to be sent again. If so, takes the request back from
  /// the leg.
  func mayBeSentAgain(_ transfer: Transfer, _ code: CURLcode) -> Bool {
    guard isLost(transfer, code) else { return false }
    return transfer.withdrawRequest()
  }

  /// Whether a request has no response because its connection or its stream ended.
  func isLost(_ transfer: Transfer, _ code: CURLcode) -> Bool {
    CurlCode.isLoss(code) && transfer.fault == nil && transfer.exchange.upload?.failure == nil
  }

  /// Sends an unprocessed request again. If libcurl could not replace its connection, the next leg sends the
  /// request.
  func sendAgain(_ transfer: Transfer, after code: CURLcode) {
    let exchange = transfer.exchange
    if CurlCode.isOfNewConnection(code) { return legFailed(transfer, code) }
    end(transfer)
    let failure = connect(
      transfer.leg, of: exchange, to: transfer.endpoint, through: transfer.proxy, at: loop.now())
    guard failure != nil else { return }
    follow(exchange.race.failed(transfer.leg), in: exchange)
  }

  /// Lets the next leg send an unprocessed request that the leg which sent it must not send again. Without a
  /// next leg, the race is over.
  ///
  /// - Parameters:
  ///   - loss: how the request came back.
  ///   - failure: why the leg does not send the request; by default what `loss` says.
  /// - Returns: whether the race has taken the request back.
  func reassign(_ transfer: Transfer, after loss: RequestLoss, because failure: LegFailure? = nil) -> Bool {
    let exchange = transfer.exchange
    guard loss.fate.isSafe, exchange.race.winner == transfer.leg, exchange.upload?.rewind() ?? true else {
      return false
    }
    exchange.race.withdrawRequest(from: transfer.leg)
    exchange.state.withdrawRequest()
    note(transfer, .failed, failure ?? loss.failure(at: transfer.peer))
    end(transfer)
    follow(exchange.race.failed(transfer.leg), in: exchange)
    return true
  }

  /// The error of a call whose request libcurl tried to send again although it may not be sent again.
  func replayError(of transfer: Transfer, _ code: CURLcode) -> NetOptError {
    let loss = transfer.lastLoss
    let errorText = transfer.easy.errorText
    let usual = "the connection to \(transfer.peer) \(errorText.ending) before the response began"
    let why =
      if loss.fate.isSafe {
        ""
      } else if transfer.exchange.request.body.isStream {
        ", and the request was not sent again, because its body is a stream"
      } else {
        ", and the request was not sent again, because netopt repeats \(transfer.exchange.request.method) only with an Idempotency-Key"
      }
    return NetOptError(
      .sendFailed, phase: .send, loss.description(at: transfer.peer, usual: usual) + why,
      endpoint: transfer.endpoint, underlying: CurlCode.underlying(code, errorText))
  }
}
