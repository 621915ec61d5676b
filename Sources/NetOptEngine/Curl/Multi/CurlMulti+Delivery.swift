import CCurl
import NetOptCore

// Delivers responses to the callers, and ends the calls.

extension CurlMulti {
  /// Acts on the end of a transfer: continues the leg on another connection, ends the leg, or ends the call.
  /// `transfer.verdict` tells how far the transfer came; it is `nil` when the transfer never reached the
  /// gate.
  ///
  /// - Parameter code: libcurl's result of the transfer; CURLE_OK when libcurl takes the response for
  ///   complete.
  func finished(_ transfer: Transfer, _ code: CURLcode) {
    let exchange = transfer.exchange
    if let refusal = transfer.refusal { return gateRefused(transfer, refusal) }
    switch transfer.verdict {
    case nil:
      legFailed(transfer, code)
    case .release:
      // Another leg won. A probe or a warm-up, which only wants a connection, ends here too.
      note(transfer, .lost)
      if exchange.purpose.endsAtGate {
        succeed(exchange, transfer)
      } else {
        end(transfer)
      }
    case .replayRefused:
      if !reassign(transfer, after: transfer.lastLoss) { fail(exchange, replayError(of: transfer, code)) }
    case .send:
      // libcurl before 8.1 continues to send the request on a closed stream, and fails, although the whole
      // response has come.
      if code == CURLE_OK || transfer.isAnsweredEarly {
        completed(transfer)
      } else if withdrawIfUnprocessed(transfer, code) {
        sendAgain(transfer, after: code)
      } else if mayBeUnprocessed(transfer, code), reassign(transfer, after: transfer.loss) {
        return
      } else {
        // The caller gets a complete head even if the transfer failed in the turn in which the head came. The
        // error then ends the body.
        if transfer.isHeadComplete, exchange.state.body == nil { deliverHead(transfer) }
        let fault = transfer.fault(code)
        if !transfer.isHeadComplete, fault == nil,
          let failure = CurlCode.failureAfterSending(code, of: transfer)
        {
          exchange.setReport(of: transfer.leg) { $0.failure = failure }
        }
        fail(exchange, exchange.upload?.failure ?? failure(of: transfer, fault, code))
      }
    }
  }

  /// The error of a call whose transfer failed: the response's fault if it has one, otherwise libcurl's
  /// result.
  private func failure(of transfer: Transfer, _ fault: ResponseFault?, _ code: CURLcode) -> NetOptError {
    guard let fault else { return CurlCode.error(code, of: transfer) }
    return fault.error(
      from: transfer.peer, transfer.endpoint, mayBeRepeated: transfer.exchange.request.mayBeRepeated)
  }

  /// Hands what a transfer has received in this turn to its caller. Nothing is handed over until the response
  /// head is complete.
  func deliver(_ transfer: Transfer) {
    transfer.markDelivered()
    let exchange = transfer.exchange
    guard !exchange.state.isFinished, transfer.isHeadComplete else { return }
    if transfer.isAnsweredEarly { return completed(transfer) }
    if transfer.waitsBehindAnswer, !waitLooks.isDue { scheduleWaitLook(in: WaitLooks.interval) }
    guard let body = exchange.state.body else { return deliverHead(transfer) }
    let (unread, released, resumes) = body.push(
      transfer.takeChunks(), end: nil, isPaused: transfer.isReceivePaused && !transfer.waitsForTurn,
      timings: timings(of: transfer))
    transfer.unread = unread
    if released > Self.mostReleased { return cancel(exchange) }
    if resumes { unpause(exchange, receive: true, send: false) }
  }

  /// Resumes the caller with the response head and with a channel that carries the body.
  private func deliverHead(_ transfer: Transfer) {
    let exchange = transfer.exchange
    if let error = versionError(transfer) { return fail(exchange, error) }
    let timings = timings(of: transfer)
    let channel = BodyChannel(lowWater: exchange.bodyBuffer / 2, timings: timings)
    exchange.state.receive(into: channel)
    // In some states, `state.receive` does not keep the channel. Without this check, `deliver` and this
    // method would then call each other without end.
    guard exchange.state.body === channel else { return }
    exchange.prepare(.response(response(transfer, ResponseBody(StreamedBody(channel, of: exchange)))))
    deliver(transfer)
    exchange.resume()
  }

  /// Ends a call whose response counts as complete: libcurl ended the transfer without an error, or the
  /// server needs no more of the request. Fails the call if a part of the response is missing
  /// (`Transfer.completionFault`).
  func completed(_ transfer: Transfer) {
    let exchange = transfer.exchange
    if let fault = transfer.completionFault {
      if transfer.isHeadComplete, exchange.state.body == nil { deliverHead(transfer) }
      let mayBeRepeated = exchange.request.mayBeRepeated
      return fail(
        exchange, fault.error(from: transfer.peer, transfer.endpoint, mayBeRepeated: mayBeRepeated))
    }
    let timings = timings(of: transfer)
    if let body = exchange.state.body {
      _ = body.push(transfer.takeChunks(), end: .success(()), isPaused: false, timings: timings)
      finish(exchange)
    } else if let error = versionError(transfer) {
      fail(exchange, error)
    } else {
      // The usual case: the whole response came in one turn and needs no channel.
      exchange.prepare(.response(response(transfer, ResponseBody(transfer.takeBody(), timings: timings))))
      finish(exchange)
      exchange.resume()
    }
  }

  /// The error of a response that is not HTTP/2 although the request allows only HTTP/2; `nil` otherwise.
  private func versionError(_ transfer: Transfer) -> NetOptError? {
    guard transfer.exchange.request.options.version == .http2, transfer.version != .http2 else { return nil }
    return NetOptError(
      .unsupported, phase: .receive,
      "\(transfer.peer) answered with HTTP/\(transfer.version), but only HTTP/2 was requested",
      endpoint: transfer.endpoint)
  }

  /// Makes the response for the caller, and takes the head from the transfer.
  private func response(_ transfer: Transfer, _ body: ResponseBody) -> NetOptResponse {
    let exchange = transfer.exchange
    var tls: TLSReport? =
      exchange.plan.isSecure
      ? TLSReport(verified: exchange.request.options.verification == .full, version: transfer.tlsVersion)
      : nil
    if transfer.descriptor != nil { tls = tls.map { CertificateSummary(of: transfer).added(to: $0) } }
    var response = NetOptResponse(
      url: exchange.request.url, head: transfer.takeHead(), body: body, route: exchange.route,
      remote: transfer.endpoint, reused: transfer.descriptor == nil, tls: tls, attempts: exchange.sends)
    response.socket = transfer.socket
    return response
  }

  /// The durations of the phases of a transfer until now. The time of the DNS lookup counts only for a leg
  /// whose address came from DNS.
  private func timings(of transfer: Transfer) -> Timings {
    let isFromDNS = transfer.exchange.race.legs[transfer.leg].source == .dns
    return transfer.timings(until: loop.now(), lookUp: isFromDNS ? transfer.exchange.lookUp.time : .zero)
  }

  /// Ends a probe or a warm-up whose connection is ready, and reports how long TCP and TLS took. The time for
  /// TLS does not include the wait for a turn (`Handshakes`).
  private func succeed(_ exchange: Exchange, _ transfer: Transfer) {
    let timings = timings(of: transfer)
    let isTLS = exchange.plan.isSecure
    let tls = isTLS ? timings.tls - transfer.waitForTurn : nil
    let report = ConnectReport(connect: timings.connect, tls: tls, reused: transfer.descriptor == nil)
    finish(exchange)
    exchange.answer(.connection(report))
  }

  // MARK: Endings

  /// The maximum number of bytes of a released body that are received, those included that the caller has not
  /// read.
  private static let mostReleased = 64 * 1024
  /// How long the rest of a released body may take.
  private static let releaseTime = Duration.milliseconds(100)

  /// Ends an exchange whose caller has released the body of the response.
  ///
  /// Over HTTP/1.1, a connection in the middle of a response cannot carry another request. So a small rest is
  /// received first, if it comes soon: many servers send head and body one after the other. HTTP/2 needs only
  /// a RST_STREAM.
  ///
  /// - Parameter unread: the number of bytes that had arrived and were not read.
  func release(_ exchange: Exchange, unread: Int) {
    guard exchange.state.body != nil, !isRetired, let transfer = exchange.winner,
      transfer.isWorthReceiving(Self.mostReleased - unread)
    else { return cancel(exchange) }
    exchange.isReleased = true
    let end = loop.now() + Self.releaseTime
    loop.schedule(exchange, at: exchange.context.deadline.map { min($0, end) } ?? end)
    transfer.unread = 0
    if transfer.isReceivePaused { unpause(exchange, receive: true, send: false) }
  }

  /// Ends an exchange with an error, whatever its state. Does nothing if the exchange has ended.
  func fail(_ exchange: Exchange, _ error: NetOptError) {
    guard !exchange.state.isFinished else { return }
    // If this exchange was racing, one of the exchanges that wait for its race now races instead.
    let waiting = exchange.leaveRace()
    let now = loop.now() - exchange.context.started
    for index in exchange.reports.indices where exchange.reports[index].outcome == .cancelled {
      exchange.reports[index].ended = now
    }
    let timings = exchange.winner.map { self.timings(of: $0) }
    let rest = exchange.winner?.takeChunks() ?? []
    let ending = finish(exchange)
    let error = error.with(route: exchange.route)
    switch ending {
    case .body(let body):
      _ = body.push(rest, end: .failure(error), isPaused: false, timings: timings ?? body.timings)
    case .answer: exchange.answer(.failure(error))
    case nil: break
    }
    for waiting in waiting where !waiting.state.isFinished { readmit(waiting) }
  }

  /// Ends an exchange, and ends or cancels everything that belongs to it: transfers, timers and tasks.
  ///
  /// - Returns: how the caller has to learn of the end; `nil` when the exchange had already ended.
  @discardableResult
  private func finish(_ exchange: Exchange) -> ExchangeState.Ending? {
    let ending = exchange.state.finish()
    while let transfer = exchange.transfers.last { end(transfer) }
    loop.cancel(exchange)
    if let timer = exchange.raceTimer { loop.cancel(timer) }
    exchange.lookUp.running?.task.cancel()
    exchange.pump?.cancel()
    exchange.leave()
    remove(exchange)
    return ending
  }

  /// Refuses an exchange that came after the shutdown.
  nonisolated func refuse(_ exchange: Exchange) {
    exchange.answer(.failure(.shutDown.with(route: exchange.route)))
  }
}
