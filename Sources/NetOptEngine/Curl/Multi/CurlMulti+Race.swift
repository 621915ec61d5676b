import CCurl
import NetOptCore

// From the arrival of a call to the leg that wins.

extension CurlMulti {
  /// Admits an exchange that arrived on the loop. The exchange races, or waits for another exchange's race.
  func admit(_ exchange: Exchange) {
    guard !isShutDown else { return refuse(exchange) }
    add(exchange)
    guard !exchange.isCancelled else { return cancel(exchange) }
    if let deadline = exchange.context.deadline {
      guard deadline > loop.now() else { return deadlinePassed(exchange) }
      loop.schedule(exchange, at: deadline)
    }
    if !tls.isSettled, exchange.verifies, !tls.makeReady() {
      // The exchange counts as under way, so that its deadline, its caller and a shutdown can end it.
      return tls.whenReady { exchange.submit { multi, exchange in multi.begin(exchange) } }
    }
    begin(exchange)
  }

  /// Makes an admitted exchange race, or wait for another exchange's race.
  private func begin(_ exchange: Exchange) {
    guard !exchange.state.isFinished else { return }
    // Only probes with TLS take turns. A warm-up does not: a caller waits for it. A probe without TLS does not:
    // it is the handshake that takes much CPU time.
    if exchange.purpose == .probe, exchange.plan.isSecure { return dialInTurn(exchange) }
    if exchange.purpose.endsAtGate { return race(exchange) }
    if exchange.request.options.connection == .fresh { return race(exchange) }
    let group = connections.group(for: exchange)
    exchange.join(group)
    if group.isReady {
      if exchange.race.legs[0].target == .dns,
        let endpoint = group.readyDNSEndpoint(avoiding: exchange.plan.avoidance)
      {
        putFirst(endpoint, from: .dns, in: exchange)
      }
      race(exchange)
    } else if group.admit(exchange) {
      race(exchange)
    } else {
      exchange.state.waitForRace()
    }
  }

  /// Starts the race of an exchange that waited for another exchange's race. If yet another exchange is
  /// racing by now, the exchange waits for that race.
  func readmit(_ exchange: Exchange) {
    guard !isShutDown, let group = exchange.group else { return }
    if group.isReady || group.admit(exchange) { race(exchange) }
  }

  /// Puts the leg to an endpoint before all other legs of an exchange, because a connection to the endpoint
  /// is ready or has just won another exchange's race. Does nothing if the exchange must not use the
  /// endpoint.
  ///
  /// - Parameter source: where the endpoint's address came from for the leg that opened the connection.
  private func putFirst(_ endpoint: IPEndpoint, from source: AddressSource, in exchange: Exchange) {
    guard endpoint.port == exchange.plan.origin.port, !exchange.plan.avoids(endpoint.address) else { return }
    let target = RoutePlan.Leg.Target.address(endpoint.address)
    let planned = exchange.race.legs.first { $0.target == target }
    if let planned {
      // The new leg does not start alone, even if the planned one does (`startsAlone`): the endpoint works.
      exchange.race.putFirst(RoutePlan.Leg(target, source: planned.source, stagger: planned.stagger))
    } else if source == .dns, exchange.race.legs.contains(where: { $0.target == .dns }) {
      // The plan has no leg to this address. If the winner's address came from DNS, it goes first, because
      // this plan may use DNS too. If it came from the list, it is not added, because this plan left it out
      // on purpose.
      exchange.race.putFirst(RoutePlan.Leg(target, source: .dns))
    }
  }

  /// Starts the race of an exchange.
  func race(_ exchange: Exchange) {
    exchange.state.race()
    follow(exchange.race.advance(), in: exchange)
  }

  /// Carries out a step of a race and the steps that follow from it, until the race waits or the exchange
  /// ends.
  func follow(_ first: Race.Step, in exchange: Exchange) {
    var step = first
    while !exchange.state.isFinished {
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

  /// Starts a leg: a DNS lookup, or a transfer to an address or a proxy.
  ///
  /// - Returns: whether the leg could be started. If not, its report has the failure.
  private func start(_ leg: Int, of exchange: Exchange) -> Bool {
    let now = loop.now()
    let planned = exchange.race.legs[leg]
    // The report says `cancelled` until the leg has won, lost or failed.
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
  /// - Parameters:
  ///   - endpoint: the endpoint to connect to; `nil` for a leg through a proxy.
  ///   - proxy: the URL of the proxy, or `nil`.
  ///   - opensNew: whether the transfer must open a new connection instead of using a pooled one.
  /// - Returns: the failure and the endpoint of a transfer that could not be started; `nil` when it was
  ///   started.
  func connect(
    _ leg: Int, of exchange: Exchange, to endpoint: IPEndpoint?, through proxy: String?,
    opensNew: Bool = false,
    at now: MonotonicInstant
  ) -> (failure: LegFailure, endpoint: IPEndpoint?)? {
    var easy: EasyHandle?
    let group = exchange.group ?? connections.group(for: exchange)
    if exchange.verifies, let failure = group.bundles.tls.failure {
      exchange.setReport(of: leg) {
        $0.outcome = .failed
        $0.failure = failure
      }
      return (failure, endpoint)
    }
    do throws(NetOptError) {
      let handle = try idleHandle()
      easy = handle
      let transfer = Transfer(
        exchange, easy: handle, leg: leg, endpoint: endpoint, proxy: proxy, bundles: group.bundles,
        tls: tls, opensNew: opensNew, callbackState: callbackState, spareChunks: spareChunks, at: now)
      try handle.prepare(for: transfer, urlHandle(for: exchange.request.url), group.sessions)
      try start(transfer)
      exchange.transfers.append(transfer)
      // A leg that waits for a connection that another leg is opening opens no socket. Its stagger time
      // starts here, because no socket would start it.
      if let endpoint, connections.isOnlyConnecting(endpoint, exchange.group) {
        callbackState.opened.append(transfer)
        prioritizeHandshake(with: endpoint)
      }
      return nil
    } catch {
      // The handle may be faulty, and is not used again.
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

  /// Starts the DNS lookup of a leg. `lookUpEnded` gets the result, on the loop.
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
    exchange.lookUp.running = (leg, now, task)
  }

  /// Replaces the DNS leg with legs to the addresses that the lookup found. The leg fails if the lookup
  /// failed, or found no address of the requested family that is still untried.
  private func lookUpEnded(_ exchange: Exchange, _ leg: Int, _ result: Result<[RoutePlan.Leg], NetOptError>) {
    guard !exchange.state.isFinished, let lookUp = exchange.lookUp.running else { return }
    exchange.lookUp.running = nil
    // A leg may have won the race meanwhile.
    guard exchange.race.winner == nil else { return }
    exchange.lookUp.time = loop.now() - lookUp.started
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
          usable.isEmpty ? "no address of the requested family" : "only addresses that netopt already tried"
        let message = "DNS has \(what) for \(exchange.plan.origin.host)"
        return lookUpFailed(
          exchange, leg, LegFailure(.nameNotFound, message),
          NetOptError(.nameNotFound, phase: .resolve, message))
      }
      exchange.reports.removeAll { $0.index == leg }
      follow(exchange.race.expanded(leg, into: new), in: exchange)
    }
  }

  /// Records that the DNS leg failed, and starts the next leg.
  private func lookUpFailed(_ exchange: Exchange, _ leg: Int, _ failure: LegFailure, _ error: NetOptError) {
    exchange.setReport(of: leg) {
      $0.outcome = .failed
      $0.failure = failure
      $0.ended = loop.now() - exchange.context.started
    }
    exchange.lookUp.error = error
    follow(exchange.race.failed(leg), in: exchange)
  }

  // MARK: What legs report

  /// Starts the stagger time of a leg that opened a socket, or that waits for a connection that another leg
  /// is opening.
  func socketOpened(by transfer: Transfer) {
    let exchange = transfer.exchange
    // A leg with a verdict has already reached the gate, so its stagger time no longer matters.
    guard !exchange.state.isFinished, transfer.verdict == nil else { return }
    follow(exchange.race.opened(transfer.leg, at: loop.now()), in: exchange)
  }

  /// Continues a race whose timer has fired: the stagger time of the front leg is over, or the DNS lookup is
  /// due.
  func legTimerFired(_ exchange: Exchange) {
    guard !exchange.state.isFinished else { return }
    let front = exchange.transfers.first { $0.leg == exchange.race.front }
    let connected = front?.connectedAt != nil
    follow(exchange.race.timeIsUp(at: loop.now(), connected: connected), in: exchange)
  }

  /// Acts on a leg that has reached the gate. If the leg has won, this method ends the other legs, starts to
  /// read the request's body stream, and starts the races of the exchanges that waited for this one.
  func reachedGate(_ transfer: Transfer) {
    let exchange = transfer.exchange
    if let descriptor = transfer.descriptor { connections.becameReady(descriptor, of: transfer) }
    // When libcurl sends the request again, the leg reaches the gate again, perhaps in the same turn. `win`
    // then returns false, unless the race took the request back in between.
    guard transfer.refusal == nil, transfer.verdict != .release,
      exchange.state.win()
    else { return }
    note(transfer, .won)
    if let attempt = exchange.context.attempt { attempt.recordSend(to: transfer.endpoint) }
    if let timer = exchange.raceTimer { loop.cancel(timer) }
    if let lookUp = exchange.lookUp.running {
      lookUp.task.cancel()
      exchange.setReport(of: lookUp.leg) { $0.ended = loop.now() - exchange.context.started }
    }
    if exchange.transfers.count > 1 {
      for loser in exchange.transfers where loser !== transfer && loser.verdict == nil {
        note(loser, .cancelled)
        end(loser)
      }
    }
    if let upload = exchange.upload, exchange.pump == nil {
      exchange.pump = Task { await upload.pump { exchange.resumeSending() } }
    }
    let source = exchange.race.legs[transfer.leg].source
    for waiting in exchange.leaveRace() where !waiting.state.isFinished {
      if let endpoint = transfer.endpoint { putFirst(endpoint, from: source, in: waiting) }
      race(waiting)
    }
  }

  /// Handles a leg whose connection did not become ready.
  func legFailed(_ transfer: Transfer, _ code: CURLcode) {
    let exchange = transfer.exchange
    let failure = CurlCode.legFailure(code, of: transfer)
    // If this leg is the winner, it has already sent the request once. It needed a new connection to send the
    // request again, and could not open that connection.
    guard exchange.race.winner != transfer.leg else {
      end(transfer)
      return resendFailed(exchange, from: transfer.peer, failure, at: transfer.endpoint)
    }
    note(transfer, .failed, failure)
    end(transfer)
    follow(exchange.race.failed(transfer.leg), in: exchange)
  }

  /// Writes the outcome of a leg, its failure and its times to the leg's report.
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
}
