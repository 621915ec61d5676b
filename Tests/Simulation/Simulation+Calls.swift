import NetOptCore
import NetOptRouting

// How a client handles a request: it plans, races, sends, and may retry.
extension Simulation {
  /// Begins a new request of a client, and adds the arrival of the client's next request to the event queue.
  func arrive(_ client: Int) {
    arrivals += 1
    rules.lastArrival = now
    clients[client].requests += 1
    clients[client].retryBudget += 0.2
    let last = clients[client].plan
    // When all requests verify certificates, no random number is drawn here. So each seed of such a run still
    // gives the same run as before there were requests without verification.
    let verifies = scenario.unverified == 0 || !random.chance(scenario.unverified)
    checkCertificates(of: client)
    let plan = plan(client, verifies: verifies)
    let isNew = !(last?.isIdentical(to: plan) ?? false)
    let call = Call(arrivals, of: client, plan, at: now)
    queue.add(.deadline(call), at: now + Call.limit)
    if arrivals + clients.count <= scenario.requests {
      let pause = scenario.pause * Double.random(in: 0.5..<1.5, using: &random)
      queue.add(.arrival(client: client), at: now + pause)
    }
    call.hiddenFailures = hiddenFailures(of: client)
    noteStart(of: call, isNew: isNew)
    advance(call)
    setProbeTimer(client)
  }

  /// Asks the client's planner for a plan, and checks the plan if it differs from the client's last plan.
  private func plan(_ client: Int, verifies: Bool) -> RoutePlan {
    let now = now
    var options = RequestOptions()
    if !verifies { options.verification = .none }
    let plan = clients[client].planner.plan(for: origin, options: options, now: now, wall: Simulation.today)
    clients[client].planner.began(plan)
    noteSuspicion(of: client)
    if let last = clients[client].plan, last.isIdentical(to: plan) { return plan }
    clients[client].plan = plan
    check(plan, of: client)
    return plan
  }

  /// Notes the start of an attempt in the trace. Notes in `Call.isAttempt` whether the attempt is the one
  /// that the circuit breaker of a half-open endpoint allows.
  ///
  /// - Parameter isNew: whether the plan differs from the client's previous plan. Every retry counts as new.
  private func noteStart(of call: Call, isNew: Bool) {
    note(
      "client \(call.client + 1) request \(call.number)\(call.attempt > 0 ? " again" : "")"
        + (call.verifies ? ": plan " : " without verification: plan ")
        + call.plan.legs.map { self.name($0.target) }.joined(separator: " ")
        + (call.plan.suspectsNetwork ? ", suspects the network" : "")
        + call.plan.candidates.compactMap { candidate in
          candidate.excluded.map { ", not \(self.name(.address(candidate.address))): \($0)" }
        }.joined())
    // Only a new plan can contain the one attempt of a half-open endpoint: the planner gives out such a plan
    // only once.
    if isNew, scenario.kind != .calm, let address = call.plan.legs.first?.address {
      call.isAttempt = isHalfOpen(address, call.client)
    }
  }

  /// Whether a client's planner reports the endpoint at this address as half-open.
  private func isHalfOpen(_ address: IPAddress, _ client: Int) -> Bool {
    clients[client].planner.status(of: origin, at: now)
      .contains { $0.endpoint.address == address && $0.state == .halfOpen }
  }

  /// The name of a leg's target in texts: the number of the server, from 1, or `DNS`.
  func name(_ target: RoutePlan.Leg.Target) -> String {
    switch target {
    case .address(let address): serverIDs[address].map { "\($0 + 1)" } ?? address.description
    case .dns: "DNS"
    case .proxy: "proxy"
    }
  }

  // MARK: The race

  /// Lets the race of the current attempt start its first legs.
  func advance(_ call: Call) { follow(call.race.advance(), call) }

  /// Carries out a step of the call's race.
  func follow(_ step: Race.Step, _ call: Call) {
    guard !call.isOver else { return }
    switch step {
    case .start(let leg):
      start(leg, call)
      if !call.isOver, call.race.winner == nil { advance(call) }
    case .wait(let moment):
      call.alarmNumber += 1
      guard let moment else { return }
      queue.add(.alarm(call, attempt: call.attempt, number: call.alarmNumber), at: max(moment, now))
    case .exhausted:
      note("request \(call.number): every leg failed")
      end(call, .unknown)
    }
  }

  /// Handles a timer of the race that has run out.
  func alarm(_ call: Call, _ attempt: Int, _ number: Int) {
    guard call.isCurrent(attempt), number == call.alarmNumber, call.race.winner == nil else { return }
    let front = call.reports.first { $0.index == call.race.front }
    follow(call.race.timeIsUp(at: now, connected: front?.connected != nil), call)
  }

  /// Starts a leg: a DNS look-up, the use of a pooled connection, or a new connection.
  private func start(_ leg: Int, _ call: Call) {
    let planned = call.race.legs[leg]
    let offset = now - call.attemptStarted
    var report = RouteReport.Leg(
      address: planned.address, source: planned.source, started: offset, ended: offset, outcome: .cancelled)
    report.index = leg
    call.reports.append(report)
    guard let address = planned.address else { return lookUp(leg, call) }
    guard let server = serverIDs[address] else { return }
    if pooled(server, call) == servers[server].generation {
      return ready(call, call.attempt, leg, isReused: true)
    }
    follow(call.race.opened(leg, at: now), call)
    connect(server, call, leg)
  }

  /// Handles the end of a leg's TCP handshake.
  func connected(_ call: Call, _ attempt: Int, _ leg: Int) {
    guard call.isCurrent(attempt) else { return }
    call.change(leg) { $0.connected = now - call.attemptStarted }
  }

  /// Handles the failure of a leg.
  func failed(_ call: Call, _ attempt: Int, _ leg: Int, _ failure: LegFailure) {
    guard call.isCurrent(attempt), call.race.winner == nil else { return }
    call.change(leg) {
      $0.outcome = .failed
      $0.failure = failure
      $0.ended = now - call.attemptStarted
    }
    call.detours += 1
    follow(call.race.failed(leg), call)
  }

  /// Handles a leg whose connection can carry the request. Only the first such leg of an attempt sends the
  /// request.
  func ready(_ call: Call, _ attempt: Int, _ leg: Int, isReused: Bool) {
    guard call.isCurrent(attempt), let address = call.race.legs[leg].address, let server = serverIDs[address]
    else { return }
    keep(server, call, isReused: isReused)
    guard call.race.ready(leg) == .send else { return }
    let offset = now - call.attemptStarted
    for index in call.reports.indices {
      if call.reports[index].index == leg {
        call.reports[index].outcome = .won
        call.reports[index].reused = isReused
        if !isReused { call.reports[index].secured = offset }
        call.reports[index].ended = offset
      } else if call.reports[index].outcome == .cancelled {
        call.reports[index].ended = offset
      }
    }
    // When another leg than the first one wins, the request has waited for the stagger or the failure of the
    // first leg.
    if let first = call.reports.first, first.index != leg { call.detours += 1 }
    call.readyAt = call.readyAt ?? now
    waits(call)
    send(to: server, call)
  }

  // MARK: The response

  /// Handles the end of an attempt that has sent its request.
  func answered(_ call: Call, _ attempt: Int, _ outcome: CallOutcome) {
    guard call.isCurrent(attempt) else { return }
    if outcome != .silent { noteReceived(call) }
    if outcome == .broke || outcome == .silent, let address = call.report.winner?.address,
      let server = serverIDs[address]
    {
      dropPooled(server, call)
    }
    end(call, outcome)
  }

  /// Ends a call whose time limit has passed.
  func deadlinePassed(_ call: Call) {
    guard !call.isOver else { return }
    note("request \(call.number): its time is up")
    end(call, call.race.winner == nil ? .unknown : .silent, isLast: true)
  }

  /// Ends an attempt: tells the planner the outcome, and retries the request if a retry may help.
  ///
  /// - Parameters:
  ///   - isLast: whether there is no time for a retry, because the deadline of the call has passed.
  ///   - isPaid: whether a retry was already taken from the budget.
  func end(_ call: Call, _ outcome: CallOutcome, isLast: Bool = false, isPaid: Bool = false) {
    let now = now
    let report = call.report
    checkWait(of: call, until: now)
    waitEnds(call)
    clients[call.client].planner.ended(call.plan)
    clients[call.client].planner.record(
      report, outcome: outcome, from: call.attemptStarted, at: now)
    clients[call.client].planner.answered(
      NetOptRequest(.get, HTTPURL(origin: origin, target: "/")), along: report, outcome, status: 200,
      from: call.attemptStarted)
    for leg in report.legs where leg.failure?.isOfCertificate ?? false {
      guard let server = leg.address.flatMap({ serverIDs[$0] }) else { continue }
      // DNS may give the address of an endpoint that the plan excludes. The race tries that endpoint all the
      // same, so meeting its wrong certificate then breaks no rule.
      if leg.source == .list {
        metWrongCertificate(server, call.client, from: call.attemptStarted)
      } else {
        learnedOfWrongCertificate(server, call.client, from: call.attemptStarted)
      }
    }
    rules.learned(report, outcome, serverIDs: serverIDs, from: call.attemptStarted, at: now)
    let isGood = if case .answered = outcome { true } else { false }
    note(
      "request \(call.number): \(isGood ? "answered by" : "failed:") "
        + (report.winner.map { name(.address($0.address ?? servers[0].address)) } ?? "nobody")
        + (isGood ? "" : ", \(outcome)")
        + report.legs.filter { $0.failure != nil }
        .map { ", \($0.address.map { self.name(.address($0)) } ?? "DNS"): \($0.failure?.message ?? "")" }
        .joined())
    let mayHelp = report.winner != nil && !isGood && !isLast && call.attempt + 1 < Call.mostAttempts
    let isRetried = mayHelp && (isPaid || takeRetry(call.client))
    if mayHelp, !isRetried { call.lacksBudget = true }
    if isRetried {
      call.detours += 1
      call.begin(plan(call.client, verifies: call.verifies), at: now)
      noteStart(of: call, isNew: true)
      advance(call)
      return
    }
    call.isOver = true
    check(call, isGood: isGood)
    setProbeTimer(call.client)
  }

  /// Takes a retry from the client's budget; returns whether there was one.
  func takeRetry(_ client: Int) -> Bool {
    let passed = (now - clients[client].retryBudgetAt).milliseconds / 1000
    clients[client].retryBudget = min(clients[client].retryBudget + 10 * passed, 100)
    clients[client].retryBudgetAt = now
    guard clients[client].retryBudget >= 1 else { return false }
    clients[client].retryBudget -= 1
    clients[client].retries += 1
    return true
  }
}
