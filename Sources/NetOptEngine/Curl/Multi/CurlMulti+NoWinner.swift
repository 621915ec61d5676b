import CCurl
import NetOptCore

// Calls that end without a response: no leg is left, the deadline passed, or the caller cancelled.

extension CurlMulti {
  /// Fails a call whose legs have all failed. Also fails the calls that waited for its race, except those
  /// with a longer connect timeout: they run another race.
  func exhausted(_ exchange: Exchange) {
    // A waiting call would fail in the same way, so it gets the error of this race. A call with a longer
    // connect timeout may still connect.
    let waiting = exchange.leaveRace()
    var error = raceError(exchange)
    if exchange.sends > 0 {
      // A leg sent the request, the request came back unprocessed, and no other leg could send it. In another
      // attempt, the first endpoint may take the request.
      error = NetOptError(
        .sendFailed, phase: .send, "\(error.message); \(exchange.sending.outcome)", endpoint: error.endpoint,
        underlying: error.underlying, isRetryable: true)
    }
    let patience = exchange.request.options.connectTimeout
    fail(exchange, error)
    for waiting in waiting where !waiting.state.isFinished {
      guard waiting.request.options.connectTimeout <= patience else {
        readmit(waiting)
        continue
      }
      let delay = waiting.context.started - exchange.context.started
      waiting.reports = exchange.reports.map { $0.seen(after: delay) }
      waiting.sharesReports = true
      fail(waiting, error)
    }
  }

  /// The error of a race that no leg has won. It combines the failures of the legs and of the DNS lookup.
  private func raceError(_ exchange: Exchange) -> NetOptError {
    guard let error = RaceFailures(exchange.plan, exchange.reports).error(lookUp: exchange.lookUp.error)
    else {
      return NetOptError(
        .connectFailed, phase: .connect, "no connection attempt could be started", isRetryable: true)
    }
    // If no address was tried, the error also says why the plan excludes the endpoints of the list.
    return exchange.reports.allSatisfy { $0.address == nil } ? error.with(exclusionsOf: exchange.plan) : error
  }

  /// Fails an exchange whose deadline has passed. If a probe could begin before its deadline, its endpoint
  /// has failed too. Cancels an exchange if the rest of its released body did not come in time.
  func deadlinePassed(_ exchange: Exchange) {
    guard !exchange.state.isFinished else { return }
    // The rest of a released body has not come in time. Nobody waits for it.
    if exchange.isReleased { return cancel(exchange) }
    if exchange.purpose == .probe {
      if exchange.transfers.isEmpty || exchange.transfers.contains(where: { isHeldBack($0) }) {
        // A probe that could not begin says nothing about its endpoint.
        return fail(
          exchange,
          NetOptError(.cancelled, phase: .tls, "the probe's time limit passed before the TLS handshake"))
      }
      // A probe's time limit applies to its endpoint. So a connection that is not ready in time counts as a
      // failure of the endpoint.
      for transfer in exchange.transfers {
        note(transfer, .failed, CurlCode.legFailure(CURLE_OPERATION_TIMEDOUT, of: transfer))
      }
    }
    if let winner = exchange.winner {
      noteStall(of: winner)
      if let endpoint = winner.endpoint { lastUnanswered = (endpoint, loop.now()) }
    }
    let limit = exchange.context.deadline.map { $0 - exchange.context.started } ?? .zero
    let time = "\(limit.nanoseconds / 1_000_000) ms"
    let (phase, what): (NetOptError.Phase, String) =
      if exchange.state.body != nil {
        (.receive, "the body was not complete")
      } else if let winner = exchange.winner, winner.waitsForStream {
        (.send, "\(winner.peer) \(Transfer.noStream)")
      } else if let winner = exchange.winner, winner.waitsAfterRefusal {
        (.send, winner.loss.description(at: winner.peer, usual: ""))
      } else if let winner = exchange.winner {
        (.receive, "\(winner.peer) had not answered")
      } else if exchange.lookUp.running != nil {
        (.resolve, "DNS had not answered")
      } else {
        (.connect, "no connection was ready" + underWay(exchange))
      }
    let isUnsent =
      exchange.winner.map { $0.waitsForStream || $0.waitsAfterRefusal } ?? (exchange.race.winner == nil)
    // Earlier failures explain why no time was left.
    let failures =
      exchange.race.winner == nil ? RaceFailures(exchange.plan, exchange.reports).inShort : nil
    fail(
      exchange,
      NetOptError(
        .timeout, phase: phase,
        "the call's time limit of \(time) passed: \(what)" + (failures.map { "; before, \($0)" } ?? ""),
        endpoint: exchange.winner?.endpoint,
        isRetryable: isUnsent || exchange.request.mayBeRepeated))
  }

  /// The end of a message about a timeout: what the first leg under way waits for, and how many other legs
  /// are under way. Empty when no leg is under way.
  private func underWay(_ exchange: Exchange) -> String {
    guard let first = exchange.transfers.min(by: { $0.leg < $1.leg }) else { return "" }
    let others = exchange.transfers.count - 1
    let (opensNone, endpoint) = (first.descriptor == nil, first.endpoint)
    let isBehindOthers =
      opensNone
      && (isBusy(endpoint)
        || lastUnanswered.map { $0.endpoint == endpoint && $0.at >= exchange.context.started } ?? false)
    let what =
      isBehindOthers
      ? "the connections to \(first.peer) were busy with requests that it had not answered in full"
      : CurlCode.legFailure(CURLE_OPERATION_TIMEDOUT, of: first).message
    return ": \(what)"
      + (others > 0 ? ", and \(others) more were under way" : "")
  }

  /// Whether an endpoint owes some request its response or the rest of its response. The deadlines of
  /// thousands of calls may pass together, so the set of busy endpoints (`busy`) is computed only once in 10
  /// ms.
  private func isBusy(_ endpoint: IPEndpoint?) -> Bool {
    guard let endpoint else { return false }
    let now = loop.now()
    if now >= busy.until {
      busy = (now + .milliseconds(10), busyEndpoints)
    }
    return busy.endpoints.contains(endpoint)
  }

  /// Fails an exchange with the error `cancelled`: its caller has cancelled it, or nobody waits for the rest
  /// of its body. Does nothing if the exchange has not been added to the multi handle, or has ended.
  func cancel(_ exchange: Exchange) {
    guard !exchange.state.isFinished, exchange.underWayIndex >= 0 else { return }
    let phase: NetOptError.Phase = exchange.race.winner == nil ? .connect : .receive
    fail(exchange, NetOptError(.cancelled, phase: phase, "the call was cancelled"))
  }
}

extension NetOptError {
  /// Returns the error with an addition to its message: why the plan excludes the first of its excluded
  /// addresses. Changes the error only if the plan uses the list and no endpoint is usable, some are
  /// excluded, and none is excluded for its certificate (`Candidate.failure`).
  fileprivate func with(exclusionsOf plan: RoutePlan) -> NetOptError {
    let excluded = plan.candidates.filter { $0.excluded != nil }
    guard plan.noneUsable != nil, !excluded.contains(where: { $0.failure != nil }),
      let first = excluded.first,
      let reason = first.excluded
    else { return self }
    let others = plan.candidates.count > 1 ? " (of \(plan.candidates.count) addresses, see the route)" : ""
    return NetOptError(
      code, phase: phase, "\(message); \(first.address) of the IP list is not used: \(reason)\(others)",
      endpoint: endpoint, underlying: underlying, isRetryable: isRetryable)
  }
}
