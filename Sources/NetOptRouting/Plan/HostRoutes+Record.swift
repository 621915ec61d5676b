import NetOptCore

extension HostRoutes {
  /// Handles a report of the usual kind: a pooled connection to the healthy winner of the last race carried
  /// the request, and a response came or the report has no outcome. Such a report normally changes no rank,
  /// so this path costs next to nothing.
  ///
  /// - Returns: whether the report was of this kind, and was handled.
  mutating func recordIfUnchanged(
    _ report: RouteReport, _ outcome: CallOutcome?, at now: MonotonicInstant
  ) -> Bool {
    guard let healthyWinner, report.legs.count == 1, report.legs[0].address == healthyWinner.address,
      report.legs[0].reused, report.legs[0].outcome == .won
    else { return false }
    // A plan with another first leg may have taken the one attempt of a half-open endpoint.
    guard report.plan.legs[0].address == healthyWinner.address || report.plan.legs[0].source == .dns else {
      return false
    }
    let wait: Duration?
    switch outcome {
    case nil: wait = nil
    case .answered(let time): wait = time
    default: return false
    }
    switch healthyWinner.index {
    case .endpoint(let index):
      _ = endpoints[index].health.succeeded(connect: nil, ready: nil, at: now)
      if let wait { answered(index, after: wait, at: now) }
    case .dnsAddress(let index): _ = dnsAddresses[index].health.succeeded(connect: nil, ready: nil, at: now)
    }
    return true
  }

  /// The wait in nanoseconds after which a response is overdue when the usual response time is unknown: 1 s.
  /// Also the wait after which `adjustedOutcome` counts any call as silent.
  private static let longestSilence: Int64 = 1_000_000_000
  /// The shortest wait in nanoseconds after which a response is overdue when the usual response time is
  /// known: 250 ms.
  private static let shortestSilence: Int64 = 250_000_000

  /// Returns `unknown` instead of `silent` when the call waited too briefly to show that the endpoint is
  /// silent, because its caller chose a short deadline. Returns every other outcome unchanged.
  ///
  /// The wait counts from the moment when the winning leg was ready. A wait of 1 s is always long enough. A
  /// shorter wait is long enough when it reaches `silenceBound(of:)`.
  ///
  /// - Parameter begun: when the call began; `nil` when unknown, which leaves the outcome unchanged.
  func adjustedOutcome(
    _ outcome: CallOutcome?, of report: RouteReport, from begun: MonotonicInstant?, at now: MonotonicInstant
  ) -> CallOutcome? {
    guard outcome == .silent, let begun, let winner = report.winner else { return outcome }
    let usual = winner.address.map(silenceBound(of:)) ?? Self.longestSilence
    let silence = (now - (begun + winner.ended)).nanoseconds
    return silence < min(usual, Self.longestSilence) ? .unknown : outcome
  }

  /// The wait in nanoseconds after which a response from an address is overdue. It is twice the sum of the
  /// origin's usual response time and the round trip to the address, and at least 250 ms. It is 1 s when the
  /// usual response time is unknown.
  func silenceBound(of address: IPAddress) -> Int64 {
    let trip = health(of: address)?.roundTrip?.smoothedNanoseconds ?? 0
    return usual.bound.map { max(Self.shortestSilence, 2 * ($0 + trip)) } ?? Self.longestSilence
  }

  /// Learns from the legs and the outcome of a call.
  ///
  /// - Parameters:
  ///   - outcome: the outcome of the call; `nil` when only the legs are known.
  ///   - begun: when the call began, from which the times of the legs count; `nil` when unknown.
  ///   - isFrozen: whether failures of the legs do not count against their endpoints, because the planner
  ///     suspects this machine's network.
  mutating func record(
    _ report: RouteReport, _ outcome: CallOutcome?, from begun: MonotonicInstant?, isFrozen: Bool,
    at now: MonotonicInstant,
    using random: inout SplitMix64
  ) {
    // A warm-up opens a connection ahead of requests, and ends when its first leg is ready. It sends nothing,
    // so no leg wins, and the ready leg counts as lost.
    let winner = report.winner ?? report.legs.first { $0.outcome == .lost }
    for leg in report.legs {
      guard let address = leg.address else { continue }
      // The endpoint may have been seen to work after this leg began. A failure of the leg then says nothing
      // about the endpoint's present state.
      let isOld = begun.map { health(of: address)?.hasWorked(since: $0 + leg.started) ?? false } ?? false
      let isFrozen = isFrozen || isOld
      if shows(leg, address, theCertificateAlong: report.plan, from: begun) {
        update(address, at: now) { $0.verified() }
      }
      switch leg.outcome {
      case .won: won(leg, address, outcome, isFrozen: isFrozen, at: now, using: &random)
      case .lost:
        let (connect, ready) = times(leg)
        update(address, at: now) {
          $0.succeeded(connect: connect, ready: ready, answered: false, at: now)
        }
        measured(leg, address, at: now, using: &random)
      case .failed:
        guard let failure = leg.failure else { continue }
        count(failure, of: address)
        if isFrozen { continue }
        failed(
          address, failure, as: fault(of: leg, failure), from: begun.map { $0 + leg.started } ?? now,
          at: now, using: &random)
      case .cancelled:
        guard let winner, Self.hasBeenOvertaken(leg, by: winner, report.plan) else { continue }
        let kind = leg.connected == nil ? LegFailure.Kind.connectTimeout : .tlsTimeout
        let failure = LegFailure(kind, "a connection attempt that began later was ready first")
        count(failure, of: address)
        if !isFrozen { failed(address, failure, from: now, at: now, using: &random) }
      }
    }
    // The first leg holds the one attempt of a half-open endpoint. The call has ended, so the attempt is
    // over. A report of an older plan may give the attempt back too early, which allows one more attempt.
    if case .address(let first) = report.plan.legs.first?.target, index(of: first) != nil {
      update(first, at: now) { $0.giveBack(at: now) }
    }
    if let winner, let address = winner.address { won(address, from: winner.source) }
  }

  /// Learns from a probe.
  ///
  /// - Parameter isFrozen: whether a failure of the probe does not count against the endpoint, because the
  ///   planner suspects this machine's network or because the endpoint was seen to work after the probe
  ///   began.
  mutating func record(
    probe result: Result<ConnectReport, LegError>, of address: IPAddress, isFrozen: Bool,
    at now: MonotonicInstant, using random: inout SplitMix64
  ) {
    switch result {
    case .success(let report):
      let connect = report.reused ? nil : report.connect
      let isOnlyMeasurement = isSecure && report.tls == nil && !report.reused
      update(address, at: now) { health in
        if !report.reused, !isOnlyMeasurement { health.triedConnection(works: true, at: now) }
        if isOnlyMeasurement {
          health.measured(connect: connect, at: now)
          _ = health.giveBack(at: now, byProbe: true)
          return true
        }
        // For `https`, a new connection made a TLS handshake here, and probes always verify the certificate.
        // The certificate of a pooled connection was verified some time ago.
        let isRelease = !report.reused && health.verified()
        let ready = report.reused ? nil : report.ready
        let hasChanged = health.succeeded(connect: connect, ready: ready, answered: false, at: now)
        let isGivenBack = health.giveBack(at: now, byProbe: true)
        return isRelease || hasChanged || isGivenBack
      }
    case .failure(let error):
      if !error.isInconclusive { count(error.failure, of: address) }
      if error.isInconclusive || isFrozen {
        update(address, at: now) { $0.giveBack(at: now, byProbe: true) }
      } else {
        if FailureCause(error.failure.kind) == .endpoint {
          update(address, at: now) {
            $0.triedConnection(works: false, at: now)
            return false
          }
        }
        failed(address, error.failure, from: nil, at: now, using: &random)
      }
    }
    if let index = index(of: address) { noteMeasured(index, at: now, using: &random) }
  }

  /// Undoes the effects of all failures since a moment, because this machine's network caused them.
  mutating func undoFailures(since moment: MonotonicInstant, at now: MonotonicInstant) {
    healthyWinner = nil
    var isUndone = false
    for index in endpoints.indices where endpoints[index].health.undoFailures(since: moment) {
      isUndone = true
    }
    // Reassesses all endpoints at once: a network failure usually affects many of them.
    if isUndone { reassessAll(at: now) }
    for index in dnsAddresses.indices { _ = dnsAddresses[index].health.undoFailures(since: moment) }
  }

  // MARK: Counts

  /// Counts a failure of a listed endpoint, also one that does not count against it.
  private mutating func count(_ failure: LegFailure, of address: IPAddress) {
    if let index = index(of: address) { endpoints[index].counts.failed(failure.kind) }
  }

  /// Counts the outcome of a request at a listed endpoint.
  private mutating func count(_ outcome: CallOutcome?, _ failure: LegFailure?, of address: IPAddress) {
    guard let index = index(of: address) else { return }
    switch outcome {
    case .unavailable(let status, _): endpoints[index].counts.failed(with: status)
    case .broke:
      if let failure {
        endpoints[index].counts.failed(failure.kind)
      } else {
        endpoints[index].counts.gotIncompleteResponse()
      }
    case .silent: endpoints[index].counts.failed(.silent)
    case .answered, .unknown, nil: break
    }
  }

  // MARK: One leg

  /// Records the leg that was ready first and carried the request, with the outcome of its call.
  private mutating func won(
    _ leg: RouteReport.Leg, _ address: IPAddress, _ outcome: CallOutcome?, isFrozen: Bool,
    at now: MonotonicInstant, using random: inout SplitMix64
  ) {
    let (connect, ready) = times(leg)
    count(outcome, leg.failure, of: address)
    switch outcome {
    case .answered(let wait):
      update(address, at: now) { $0.succeeded(connect: connect, ready: ready, at: now) }
      if let index = index(of: address) { answered(index, after: wait, at: now) }
    case nil, .unknown:
      let answered = outcome == nil
      update(address, at: now) {
        $0.succeeded(connect: connect, ready: ready, answered: answered, at: now)
      }
    case .unavailable(let status, let rest):
      serviceFailed(
        address, connect, ready, "it answered \(status)", as: .useless, rest, isAnswer: true, at: now,
        using: &random)
    case .broke, .silent:
      if isFrozen { break }
      if outcome == .broke, let failure = leg.failure {
        update(address, at: now) {
          $0.measured(connect: connect, ready: ready, at: now)
          return connect != nil || ready != nil
        }
        // The planner itself found the endpoint silent and had the request taken from it. The report adds
        // nothing new.
        if failure.kind == .silent { break }
        // `reset` means that the connection that carried the request ended. A failure of any other kind
        // belongs to the replacement that libcurl tried to open, which was never ready.
        let fault = failure.kind == .reset ? Circuit.Fault.broke : .unreachable
        failed(address, failure, as: fault, from: now, at: now, using: &random)
        break
      }
      let (what, fault): (String, Circuit.Fault) =
        outcome == .silent
        ? ("it did not answer a request in time", .useless)
        : ("it sent no complete response to a request", .broke)
      serviceFailed(address, connect, ready, what, as: fault, nil, at: now, using: &random)
    }
    measured(leg, address, at: now, using: &random)
  }

  /// Records a failure of the service behind an address.
  ///
  /// - Parameters:
  ///   - connect: the leg's time to connect; `nil` when it was not measured.
  ///   - ready: the leg's time until it was ready; `nil` when it was not measured.
  ///   - what: the failure in words for users.
  ///   - rest: the time for which the service asked not to be used; `nil` if it did not ask.
  ///   - isAnswer: whether a response reported the failure.
  private mutating func serviceFailed(
    _ address: IPAddress, _ connect: Duration?, _ ready: Duration?, _ what: String, as fault: Circuit.Fault,
    _ rest: Duration?, isAnswer: Bool = false, at now: MonotonicInstant, using random: inout SplitMix64
  ) {
    update(address, at: now) {
      $0.measured(connect: connect, ready: ready, at: now)
      $0.serviceFailed(what, as: fault, rest: rest, isAnswer: isAnswer, at: now, using: &random)
      return true
    }
  }

  /// Records a failed connection to an address.
  ///
  /// - Parameter begun: when the connection attempt began; `nil` for a probe.
  private mutating func failed(
    _ address: IPAddress, _ failure: LegFailure, as fault: Circuit.Fault = .unreachable,
    from begun: MonotonicInstant?, at now: MonotonicInstant, using random: inout SplitMix64
  ) {
    let pace = quarantinePace(of: address)
    update(address, at: now) {
      $0.failed(failure, as: fault, from: begun, pace: pace, at: now, using: &random)
    }
  }

  /// How soon a wrong certificate of an address is checked again. Probes check only listed addresses.
  private func quarantinePace(of address: IPAddress) -> Quarantine.Pace {
    Quarantine.Pace(isProbed: isProbed && index(of: address) != nil)
  }

  /// Whether a leg shows that an endpoint in quarantine presents the right certificate again. The leg must
  /// have opened a new connection and verified its certificate after the endpoint's last failure.
  private func shows(
    _ leg: RouteReport.Leg, _ address: IPAddress, theCertificateAlong plan: RoutePlan,
    from begun: MonotonicInstant?
  ) -> Bool {
    guard let secured = leg.secured, !leg.reused, plan.verifies else { return false }
    guard leg.outcome == .won || leg.outcome == .lost, let health = health(of: address), health.isQuarantined
    else { return false }
    guard let begun, let failed = health.lastFailed else { return true }
    return begun + secured > failed
  }

  /// Records that a response of an endpoint began.
  private mutating func answered(_ index: Int, after wait: Duration, at now: MonotonicInstant) {
    endpoints[index].counts.answered(after: wait.nanoseconds)
    if endpoints[index].health.answered(after: wait.nanoseconds, of: index, usual: &usual, at: now) {
      reassess(index, at: now)
    }
  }

  /// The time until a leg was connected and the time until it was ready, both counted from its start. `nil`
  /// for a reused connection, and for a step that the leg did not reach.
  private func times(_ leg: RouteReport.Leg) -> (connect: Duration?, ready: Duration?) {
    guard !leg.reused else { return (nil, nil) }
    let ready = isSecure ? leg.secured : leg.connected
    return (leg.connected.map { $0 - leg.started }, ready.map { $0 - leg.started })
  }

  /// The way in which a failed leg's endpoint failed: the connection was never ready, or a ready connection
  /// broke or stayed silent.
  private func fault(of leg: RouteReport.Leg, _ failure: LegFailure) -> Circuit.Fault {
    guard leg.reused || (isSecure ? leg.secured : leg.connected) != nil else { return .unreachable }
    return failure.kind == .silent ? .useless : .broke
  }

  /// Postpones the routine probe of an endpoint to which a leg opened a connection.
  private mutating func measured(
    _ leg: RouteReport.Leg, _ address: IPAddress, at now: MonotonicInstant, using random: inout SplitMix64
  ) {
    guard times(leg).ready != nil, let index = index(of: address) else { return }
    noteMeasured(index, at: now, using: &random)
  }

  /// Whether a cancelled leg counts as failed: the winner started later, and the cancelled leg had used up
  /// its stagger before it was cancelled.
  private static func hasBeenOvertaken(
    _ leg: RouteReport.Leg, by winner: RouteReport.Leg, _ plan: RoutePlan
  ) -> Bool {
    guard leg.started < winner.started else { return false }
    let planned = plan.legs.first { $0.target == leg.address.map { .address($0) } }
    return leg.ended - leg.started >= planned?.stagger ?? .defaultStagger
  }
}
