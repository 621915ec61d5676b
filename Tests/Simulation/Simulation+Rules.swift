import NetOptCore
import NetOptRouting

// The rules that every run must keep.
extension Simulation {
  // MARK: Plans

  /// Checks that a plan has DNS and no leg twice, that its candidates are the endpoints of the list, and that
  /// its legs before DNS are the candidates that are not excluded.
  func check(_ plan: RoutePlan, of client: Int) {
    if !plan.legs.contains(where: { $0.target == .dns }) { fault("a plan has no DNS") }
    if let broken = demand?(plan) { fault(broken) }
    if Set(plan.legs.map(\.target)).count != plan.legs.count { fault("a plan has a leg twice") }
    let candidates = plan.candidates
    if Set(candidates.map(\.address)) != Set(servers.prefix(scenario.listed).map(\.address)) {
      fault("a plan does not explain every listed endpoint")
    }
    let included = candidates.filter { $0.excluded == nil }.map(\.address)
    if included != plan.legs.prefix(while: { $0.target != .dns }).compactMap(\.address) {
      fault("the candidates that are not excluded are not the legs before DNS")
    }
  }

  // MARK: Requests

  /// Checks a call that has ended. It must succeed if one path worked from its start to its end. Requests
  /// must soon go to the best endpoint.
  ///
  /// - Parameter isGood: whether the call got a usable response.
  func check(_ call: Call, isGood: Bool) {
    if !isGood {
      if !call.lacksBudget, let path = workingPath(for: call) {
        fault("request \(call.number) failed although \(path) worked all the time")
      }
      return
    }
    checkRest(call)
    guard clients.count == 1, scenario.policy == .fastest, call.verifies,
      let address = call.report.winner?.address,
      let server = serverIDs[address]
    else { return }
    if arrivals > 5, let winner = rules.winner, winner != server { rules.winnerChanges += 1 }
    rules.winner = server
    // A request that began before the last change used older knowledge.
    guard call.started >= rules.lastChange else { return }
    rules.requestsSince += 1
    guard isStrict, rules.requestsSince > Rules.settling, !isSettled(call, server) else { return }
    rules.unsettled += 1
    if rules.unsettled > mostUnsettled {
      fault(
        "request \(call.number), \(rules.requestsSince) after the last news, went to \(server + 1) with "
          + "\(call.detours) detours; best is \(bestKnown.map { "\($0 + 1)" } ?? "none")")
      rules.unsettled = 0
    }
  }

  /// Whether the run is quiet enough for the rule that requests settle on the best endpoint.
  private var isStrict: Bool {
    switch scenario.kind {
    case .calm, .deaths, .slowness, .listDead, .unavailable, .outage, .certificates:
      network == .up && !hasLoss
    case .stalls, .flapping, .wrongDNS, .highLoad, .chaos: false
    }
  }

  /// The value of `Rules.unsettled` up to which the rule still holds: about one in seven of the requests
  /// since the last change. With a slow server and pauses above 1 s between requests, it is about three in
  /// five. The policy's penalty for slow responses fades with time (docs/adr/0013), so a nearer endpoint with
  /// slow responses gets requests again and again.
  private var mostUnsettled: Int {
    let isSlow = servers.prefix(scenario.listed).contains {
      if case .slow = $0.behaviour { true } else { false }
    }
    return isSlow && scenario.pause > .seconds(1)
      ? 4 + rules.requestsSince * 3 / 5 : 1 + rules.requestsSince / 7
  }

  /// Whether packets to some server can be lost.
  private var hasLoss: Bool { servers.contains { $0.loss > 0 } }

  /// The number of servers that seem to work for a client but do not: they answer 503, or the client's pooled
  /// connection to them is dead and not closed.
  func hiddenFailures(of client: Int) -> Int {
    servers.indices.count {
      servers[$0].behaviour.failsAfterConnecting
        || !servers[$0].behaviour.works && clients[client].pool[$0] == servers[$0].generation
    }
  }

  /// Whether the last failure of an endpoint was one of its service, and not of a connection: a bad response
  /// or no response.
  private func isOfService(_ failure: LegFailure?) -> Bool {
    failure?.kind == .other || failure?.kind == .silent
  }

  /// Describes a path that worked from the start of a failed call to its end, so that the call should have
  /// succeeded; `nil` if there is none.
  private func workingPath(for call: Call) -> String? {
    let (moment, client) = (call.started, call.client)
    guard network == .up, rules.networkChange <= moment else { return nil }
    // A race avoids an endpoint whose connection does not get ready. An endpoint whose connection gets ready
    // and whose request fails costs one of the four attempts.
    guard call.hiddenFailures + servers.count(where: { $0.changed > moment }) <= 2 else { return nil }
    // The policy never uses an endpoint with a wrong certificate. When the service of an endpoint has failed,
    // the policy does not use the endpoint until the open time of its circuit breaker is over. While some
    // endpoint responds, even with errors, the policy uses no other excluded endpoint either.
    let isAnsweredBadly = servers.prefix(scenario.listed).contains(where: \.behaviour.failsAfterConnecting)
    let quarantined =
      clients[client].planner.status(of: origin, at: now)
      .filter {
        $0.state == .quarantined || $0.state == .open && (isOfService($0.lastFailure) || isAnsweredBadly)
      }
      .map(\.endpoint.address)
      // Also the endpoints that a plan of the call left out, for a reason that may have ended by now. An
      // endpoint whose connections failed is not left out: it has a leg after DNS.
      + [call.firstPlan, call.plan].flatMap { plan in
        plan.candidates.map(\.address).filter { address in !plan.legs.contains { $0.address == address } }
      }
    let isFine = { (server: Server) in server.behaviour.works && server.changed <= moment }
    if let server = servers.prefix(scenario.listed)
      .first(where: { isFine($0) && !quarantined.contains($0.address) })
    {
      return name(.address(server.address))
    }
    // A race reaches DNS when no connection to a listed endpoint gets ready. So DNS counts as no path while a
    // listed service answers 503.
    guard !servers.prefix(scenario.listed).contains(where: \.behaviour.failsAfterConnecting),
      call.hiddenFailures + servers.count(where: { $0.changed > moment }) <= 1,
      case .answers(let numbers) = lookUps, rules.lookUpsChange <= moment,
      let number = numbers.first(where: { isFine(servers[$0]) && !quarantined.contains(servers[$0].address) })
    else { return nil }
    return "\(number + 1), to which DNS leads,"
  }

  /// The listed server with the lowest `cost` among those that work and that the policy can know; `nil` if
  /// there is none.
  private var bestKnown: Int? {
    (0..<scenario.listed)
      .filter { servers[$0].behaviour.works && rules.observations[$0].isKnown }
      .min { cost($0) < cost($1) }
  }

  /// The expected time of a request over a new connection, in milliseconds: two round trips for the
  /// connection, and the delay of the response. The usual service time is left out, because the policy
  /// ignores it unless it is unusually long.
  private func cost(_ server: Int) -> Double {
    2 * servers[server].expectedRoundTrip + servers[server].expectedDelay(at: now)
  }

  /// Whether a request went to a good endpoint without a detour. Good endpoints are those within 10 % of the
  /// best one, and those within the margin in which the policy keeps an endpoint in use (5 ms or 15 %). A
  /// request that makes the one attempt of a half-open endpoint counts as settled. So does every request
  /// while the policy cannot know the server, or must not use the best one.
  private func isSettled(_ call: Call, _ server: Int) -> Bool {
    if call.isAttempt { return true }
    guard let best = bestKnown else { return true }
    // The policy must not use the best server yet in two cases. In the first, its service failed, and a new
    // connection does not show that the service is back. In the second, its certificate was wrong, and a
    // connection without verification does not show that it is right again.
    let isBarred = clients[call.client].planner.status(of: origin, at: now).contains {
      $0.endpoint.address == servers[best].address
        && ($0.state == .quarantined || $0.state != .closed && isOfService($0.lastFailure))
    }
    if isBarred { return true }
    guard call.detours == 0 else { return false }
    guard rules.observations[server].isKnown else { return true }
    let allowed = max(cost(best) * 1.1, cost(best) + 5, cost(best) / 0.85)
    // Round trips vary, and so do the policy's estimates of them.
    return cost(server) <= allowed * (1 + 1.5 * servers[server].jitter) + 0.5
  }

  /// Checks that no request goes to a server that asked for a rest while another server works.
  private func checkRest(_ call: Call) {
    guard let address = call.report.winner?.address, let server = serverIDs[address], clients.count == 1,
      let rest = rules.rests[server], call.attemptStarted > rest.since, call.attemptStarted < rest.until
    else { return }
    let others = servers.indices.prefix(scenario.listed).filter {
      $0 != server && servers[$0].behaviour.works && servers[$0].changed <= rest.since
    }
    if !others.isEmpty { fault("request \(call.number) went to \(server + 1), which had asked for a rest") }
  }

  // MARK: The whole run

  /// Checks that after an outage of the network no circuit breaker is open for a server that never failed.
  func checkAfterOutage() {
    guard rules.sawOutage, clients.count == 1 else { return }
    for client in clients.indices {
      for status in clients[client].planner.status(of: origin, at: now) where status.state == .open {
        guard let server = serverIDs[status.endpoint.address], servers[server].changed == Simulation.start
        else { continue }
        fault("the circuit of \(server + 1) is open after the network was away")
      }
    }
  }

  /// Checks the rules for the whole run: the stability of the leading endpoint, and the numbers of retries
  /// and probes.
  func checkAtEnd() {
    let seconds = (now - Simulation.start).milliseconds / 1000
    if scenario.kind == .calm, !hasLoss, clients.count == 1, rules.winnerChanges > 2 {
      fault("the leader changed \(rules.winnerChanges) times although nothing happened")
    }
    for (number, client) in clients.enumerated() {
      if scenario.kind == .unavailable || scenario.kind == .calm, client.retries * 5 > client.requests + 15 {
        fault("client \(number + 1) needed \(client.retries) retries for \(client.requests) requests")
      }
      // The limit allows a probe of each endpoint every few minutes, a probe each minute of a wrong
      // certificate after the first seven checks, and the probes of open circuits. A server that goes down
      // and comes back needs such a probe every few seconds.
      let periods = scenario.changes.count { $0.change.isWrongCertificate }
      let each = seconds / 60 + 10
      let most =
        Double(scenario.listed) * each + 7 * Double(periods)
        + (scenario.kind == .flapping || scenario.kind == .chaos ? seconds / 3 : 0)
      if Double(client.probes) > most {
        fault("client \(number + 1) made \(client.probes) probes in \(Int(seconds)) s")
      }
    }
    checkHealing()
    checkReturn()
  }

  /// Checks that a service that works again, and is by far the best one, gets a request within 400 s, however
  /// often it failed. A circuit breaker stays open for at most 300 s plus 20 % jitter.
  private func checkReturn() {
    guard scenario.kind == .unavailable, clients.count == 1, !hasLoss else { return }
    for server in 0..<scenario.listed
    where servers[server].behaviour.works && rules.observations[server].answers == 0 {
      let others = (0..<scenario.listed).filter { $0 != server }.map { cost($0) }
      let isBest = others.allSatisfy { cost(server) * 1.5 + 10 < $0 }
      let time = rules.lastArrival - servers[server].changed
      if isBest, time > .seconds(400) {
        fault(
          "\(server + 1) was asked nothing for \(time.components.seconds) s, although it worked and was the best"
        )
      }
    }
  }

  /// Checks that every listed server is tried again and again, however often it failed.
  private func checkHealing() {
    guard clients.count == 1, scenario.pause < .seconds(60) else { return }
    let end = rules.lastArrival
    for server in 0..<scenario.listed {
      let gap = max(rules.longestGap[server], end - rules.observations[server].touched)
      if gap > .seconds(420) { fault("\(server + 1) was not tried for \(gap.components.seconds) s") }
    }
  }
}

extension Scenario.Change {
  fileprivate var isWrongCertificate: Bool {
    if case .server(_, .wrongCertificate) = self { true } else { false }
  }
}
