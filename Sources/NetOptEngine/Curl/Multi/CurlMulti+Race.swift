import CCurl
import NetOptCore

// From a call's arrival to the leg that wins.

extension CurlMulti {
  /// Takes an exchange that arrived on the loop.
  func admit(_ exchange: Exchange) {
    guard !isShutDown else { return refuse(exchange) }
    add(exchange)
    guard !exchange.isCancelled else { return cancel(exchange) }
    if let deadline = exchange.context.deadline {
      guard deadline > loop.now() else { return deadlinePassed(exchange) }
      loop.schedule(exchange, at: deadline)
    }
    if exchange.purpose.endsAtGate { return race(exchange) }
    if exchange.request.options.connection == .fresh { return race(exchange) }
    let group = connections.group(for: exchange)
    exchange.join(group)
    if group.isReady {
      if exchange.race.legs[0].target == .dns,
        let answer = group.readyAnswer(avoiding: exchange.plan.avoidance)
      {
        putFirst(answer, from: .dns, in: exchange)
      }
      race(exchange)
    } else if group.admit(exchange) {
      race(exchange)
    }
  }

  /// Lets an exchange race that had waited for another one's.
  func readmit(_ exchange: Exchange) {
    guard !isShutDown, let group = exchange.group else { return }
    if group.isReady || group.admit(exchange) { race(exchange) }
  }

  /// Tries an endpoint before all others: it has a connection, or has just won.
  ///
  /// - Parameter source: where its address came from for the leg that opened the connection.
  private func putFirst(_ endpoint: IPEndpoint, from source: AddressSource, in exchange: Exchange) {
    guard endpoint.port == exchange.plan.origin.port, !exchange.plan.avoids(endpoint.address) else { return }
    let target = RoutePlan.Leg.Target.address(endpoint.address)
    var legs = exchange.race.legs
    let planned = legs.first { $0.target == target }
    // What is not in the plan is used only as the answer of DNS that it is: the list's endpoints are left out for a reason.
    guard planned != nil || source == .dns && legs.contains(where: { $0.target == .dns }) else { return }
    legs.removeAll { $0.target == target }
    // Also when it is a last resort: it works.
    let leg = planned.map { RoutePlan.Leg(target, source: $0.source, stagger: $0.stagger) }
    legs.insert(leg ?? RoutePlan.Leg(target, source: .dns), at: 0)
    exchange.race = Race(
      legs, startsTwo: false, multiplexes: exchange.plan.multiplexes,
      mayBeRepeated: exchange.request.mayBeRepeated)
  }

  private func race(_ exchange: Exchange) { follow(exchange.race.advance(), in: exchange) }

  /// Does what the race says is next.
  func follow(_ first: Race.Step, in exchange: Exchange) {
    var step = first
    while !exchange.isOver {
      switch step {
      case .start(let leg):
        step = start(leg, of: exchange) ? exchange.race.advance() : exchange.race.failed(leg)
      case .wait(let moment):
        if let moment {
          let timer = exchange.raceTimer ?? RaceTimer(exchange, self)
          exchange.raceTimer = timer
          loop.schedule(timer, at: moment)
        } else if let timer = exchange.raceTimer {
          loop.cancel(timer)
        }
        return
      case .exhausted:
        return exhausted(exchange)
      }
    }
  }

  /// Starts a leg.
  ///
  /// - Returns: whether it could be started.
  private func start(_ leg: Int, of exchange: Exchange) -> Bool {
    let now = loop.now()
    let planned = exchange.race.legs[leg]
    var report = RouteReport.Leg(
      address: nil, source: planned.source,
      startedNanoseconds: now.nanoseconds(since: exchange.context.started), outcome: .cancelled, index: leg)
    var endpoint: IPEndpoint?
    var proxy: String?
    switch planned.target {
    case .dns:
      exchange.reports.append(report)
      lookUp(exchange.plan.origin, for: exchange, leg, at: now)
      return true
    case .address(let address):
      report.address = address
      endpoint = IPEndpoint(address, port: exchange.plan.origin.port)
    case .proxy: proxy = exchange.plan.proxy
    }
    exchange.reports.append(report)
    return connect(leg, of: exchange, to: endpoint, through: proxy, at: now) == nil
  }

  /// Starts the transfer of a leg.
  ///
  /// - Parameter opensNew: whether it uses no connection that is open already.
  /// - Returns: why it could not be started.
  func connect(
    _ leg: Int, of exchange: Exchange, to endpoint: IPEndpoint?, through proxy: String?,
    opensNew: Bool = false,
    at now: MonotonicInstant
  ) -> (failure: LegFailure, endpoint: IPEndpoint?)? {
    var easy: EasyHandle?
    do throws(NetOptError) {
      let handle = try idleHandle()
      easy = handle
      let group = exchange.group ?? connections.group(for: exchange)
      let transfer = Transfer(
        exchange, easy: handle, leg: leg, endpoint: endpoint, proxy: proxy, bundles: group.bundles,
        opensNew: opensNew, records: records, spareChunks: spareChunks, at: now)
      try handle.prepare(for: transfer, urlHandle(for: exchange.request.url), group.sessions)
      try start(transfer)
      exchange.transfers.append(transfer)
      // On a connection that others are opening this leg opens no socket, and its time would never run.
      if let endpoint, connections.isOnlyConnecting(endpoint, exchange.group) {
        records.opened.append(transfer)
        hurryHandshake(with: endpoint)
      }
      return nil
    } catch {
      // The handle is not used again, whatever is wrong with it.
      easy?.release()
      let kind: LegFailure.Kind =
        proxy != nil && error.code == .invalidConfiguration ? .proxyRefused : .other
      let failure = LegFailure(kind, error.description)
      exchange.setReport(of: leg) {
        $0.outcome = .failed
        $0.failure = failure
      }
      return (failure, endpoint)
    }
  }

  // MARK: Look-ups

  private func lookUp(_ origin: Origin, for exchange: Exchange, _ leg: Int, at now: MonotonicInstant) {
    let fresh = exchange.request.options.connection == .fresh
    let source = legs
    let task = Task {
      let result: Result<[RoutePlan.Leg], NetOptError>
      do throws(NetOptError) {
        result = .success(try await source.legs(for: origin, fresh: fresh))
      } catch {
        result = .failure(error)
      }
      exchange.submit { multi, exchange in multi.lookUpEnded(exchange, leg, result) }
    }
    exchange.lookUp = Exchange.LookUp(leg: leg, started: now, task: task)
  }

  private func lookUpEnded(_ exchange: Exchange, _ leg: Int, _ result: Result<[RoutePlan.Leg], NetOptError>) {
    guard !exchange.isOver, let lookUp = exchange.lookUp else { return }
    exchange.lookUp = nil
    // The race may have been won meanwhile.
    guard exchange.race.winner == nil else { return }
    exchange.lookUpTime = loop.now() - lookUp.started
    switch result {
    case .failure(let error):
      let kind: LegFailure.Kind = error.code == .nameNotFound ? .nameNotFound : .resolve
      lookUpFailed(exchange, leg, LegFailure(kind, error.message), error)
    case .success(let answers):
      let family = exchange.request.options.family
      let usable = exchange.plan.ordered(answers.filter { family == nil || $0.address?.family == family })
      let new = exchange.race.untried(usable)
      guard !new.isEmpty else {
        let what =
          usable.isEmpty ? "no address of the kind asked for" : "only addresses that were tried already"
        let message = "DNS knows \(what) for \(exchange.plan.origin.host)"
        return lookUpFailed(
          exchange, leg, LegFailure(.nameNotFound, message),
          NetOptError(.nameNotFound, phase: .resolve, message))
      }
      exchange.reports.removeAll { $0.index == leg }
      follow(exchange.race.expanded(leg, into: new), in: exchange)
    }
  }

  private func lookUpFailed(_ exchange: Exchange, _ leg: Int, _ failure: LegFailure, _ error: NetOptError) {
    exchange.setReport(of: leg) {
      $0.outcome = .failed
      $0.failure = failure
      $0.ended = loop.now() - exchange.context.started
    }
    exchange.lookUpError = error
    follow(exchange.race.failed(leg), in: exchange)
  }

  // MARK: What legs report

  func socketOpened(by transfer: Transfer) {
    let exchange = transfer.exchange
    // A leg that is ready already was so on a connection that was there.
    guard !exchange.isOver, transfer.verdict == nil else { return }
    follow(exchange.race.opened(transfer.leg, at: loop.now()), in: exchange)
  }

  func legHadItsTime(_ exchange: Exchange) {
    guard !exchange.isOver else { return }
    let front = exchange.transfers.first { $0.leg == exchange.race.front }
    let connected = front?.connectedAt != nil
    follow(exchange.race.timeIsUp(at: loop.now(), connected: connected), in: exchange)
  }

  func cameToGate(_ transfer: Transfer) {
    let exchange = transfer.exchange
    if let descriptor = transfer.descriptor { connections.becameReady(descriptor, of: transfer) }
    // A replay comes to the gate again, perhaps in the same turn.
    guard !exchange.isOver, transfer.refusal == nil, transfer.verdict != .lost, !exchange.isWon else {
      return
    }
    exchange.isWon = true
    note(transfer, .won)
    if let attempt = exchange.context.attempt { attempt.isSent(to: transfer.endpoint) }
    if let timer = exchange.raceTimer { loop.cancel(timer) }
    if let lookUp = exchange.lookUp {
      lookUp.task.cancel()
      exchange.setReport(of: lookUp.leg) { $0.ended = loop.now() - exchange.context.started }
    }
    for loser in exchange.transfers where loser !== transfer && loser.verdict == nil {
      note(loser, .cancelled)
      end(loser)
    }
    if let upload = exchange.upload, exchange.pump == nil {
      exchange.pump = Task { await upload.pump { exchange.goOnSending() } }
    }
    let source = exchange.race.legs[transfer.leg].source
    for waiting in exchange.leaveRace() where !waiting.isOver {
      if let endpoint = transfer.endpoint { putFirst(endpoint, from: source, in: waiting) }
      race(waiting)
    }
  }

  /// A leg ended before it could send anything.
  func legFailed(_ transfer: Transfer, _ code: CURLcode) {
    let exchange = transfer.exchange
    let failure = CurlCode.legFailure(code, of: transfer)
    note(transfer, .failed, failure)
    end(transfer)
    // The request was sent before, and the connection that was to repeat it cannot be opened. No other leg is under way.
    guard exchange.race.winner != transfer.leg else {
      return fail(exchange, NetOptError(failure, at: transfer.endpoint))
    }
    follow(exchange.race.failed(transfer.leg), in: exchange)
  }

  /// Writes down what became of a leg.
  func note(_ transfer: Transfer, _ outcome: RouteReport.Outcome, _ failure: LegFailure? = nil) {
    let start = transfer.exchange.context.started
    transfer.exchange.setReport(of: transfer.leg) {
      $0.outcome = outcome
      $0.failure = failure
      $0.connectedNanoseconds = transfer.connectedAt.map { $0.nanoseconds(since: start) }
      $0.securedNanoseconds = transfer.securedAt.map { $0.nanoseconds(since: start) }
      $0.endedNanoseconds = (transfer.readyAt ?? loop.now()).nanoseconds(since: start)
      $0.reused = transfer.readyAt != nil && transfer.descriptor == nil
    }
  }

  // MARK: Endings without a winner

  private func exhausted(_ exchange: Exchange) {
    // Those who waited for this race would find the same: its outcome is theirs, unless they have more patience.
    let waiting = exchange.leaveRace()
    var error = raceError(exchange)
    if exchange.sends > 0 {
      // It came back, and there was nobody else to send it to. Another attempt may find the first one ready.
      error = NetOptError(
        .sendFailed, phase: .send, "\(error.message); \(exchange.sending.outcome)", endpoint: error.endpoint,
        underlying: error.underlying, isRetryable: true)
    }
    let patience = exchange.request.options.connectTimeout
    fail(exchange, error)
    for waiting in waiting where !waiting.isOver {
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

  private func raceError(_ exchange: Exchange) -> NetOptError {
    guard let error = RaceFailures(exchange.plan, exchange.reports).error(lookUp: exchange.lookUpError) else {
      return NetOptError(.connectFailed, phase: .connect, "no leg could be started", isRetryable: true)
    }
    // What DNS says is the last word only when nothing else was tried.
    return exchange.reports.allSatisfy { $0.address == nil } ? error.with(exclusionsOf: exchange.plan) : error
  }

  func deadlinePassed(_ exchange: Exchange) {
    guard !exchange.isOver else { return }
    if exchange.purpose == .probe {
      if exchange.transfers.contains(where: { isHeldBack($0) }) {
        // A probe that was not let begin says nothing about its endpoint.
        return fail(exchange, NetOptError(.cancelled, phase: .tls, "the probe had no time left for TLS"))
      }
      // Its limit is the endpoint's, not a call's: what was not done in time is blamed on it.
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
      if exchange.body != nil {
        (.receive, "the body was not complete")
      } else if let winner = exchange.winner, winner.waitsForStream {
        (.send, "\(winner.place) \(Transfer.noStream)")
      } else if let winner = exchange.winner, winner.waitsAfterRefusal {
        (.send, winner.loss.description(at: winner.place, usual: ""))
      } else if let winner = exchange.winner {
        (.receive, "\(winner.place) had not answered")
      } else if exchange.lookUp != nil {
        (.resolve, "DNS had not answered")
      } else {
        (.connect, "no connection was ready" + underWay(exchange))
      }
    let isUnsent =
      exchange.winner.map { $0.waitsForStream || $0.waitsAfterRefusal } ?? (exchange.race.winner == nil)
    // What has failed by then is why there was no time left.
    let failures =
      exchange.race.winner == nil ? RaceFailures(exchange.plan, exchange.reports).inShort : nil
    fail(
      exchange,
      NetOptError(
        .timeout, phase: phase,
        "after the call's limit of \(time) \(what)" + (failures.map { "; before, \($0)" } ?? ""),
        endpoint: exchange.winner?.endpoint,
        isRetryable: isUnsent || exchange.request.mayBeRepeated))
  }

  /// What the legs wait for that are under way.
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
      ? "the connections to \(first.place) were busy with requests that it had not answered in full"
      : CurlCode.legFailure(CURLE_OPERATION_TIMEDOUT, of: first).message
    return ": \(what)"
      + (others > 0 ? ", and \(others) more were under way" : "")
  }

  /// Whether requests wait for answers of an endpoint, or for their end. Where the deadlines of thousands of calls pass together, it is looked
  /// up once for those of 10 ms.
  private func isBusy(_ endpoint: IPEndpoint?) -> Bool {
    guard let endpoint else { return false }
    let now = loop.now()
    if now >= busy.until {
      busy = (now + .milliseconds(10), busyEndpoints)
    }
    return busy.endpoints.contains(endpoint)
  }

  func cancel(_ exchange: Exchange) {
    guard !exchange.isOver, exchange.underWayIndex >= 0 else { return }
    let phase: NetOptError.Phase = exchange.race.winner == nil ? .connect : .receive
    fail(exchange, NetOptError(.cancelled, phase: phase, "the call was cancelled"))
  }
}

extension NetOptError {
  /// The same error, saying also why the list's endpoints were not tried, when they were not.
  fileprivate func with(exclusionsOf plan: RoutePlan) -> NetOptError {
    let excluded = plan.candidates.filter { $0.excluded != nil }
    guard plan.withoutList != nil, !excluded.contains(where: { $0.failure != nil }),
      let first = excluded.first,
      let reason = first.excluded
    else { return self }
    let others = plan.candidates.count > 1 ? " (of \(plan.candidates.count) addresses, see the route)" : ""
    return NetOptError(
      code, phase: phase, "\(message); \(first.address) of the list is left out: \(reason)\(others)",
      endpoint: endpoint, underlying: underlying, isRetryable: isRetryable)
  }
}
