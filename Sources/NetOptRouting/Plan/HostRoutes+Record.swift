import NetOptCore

extension HostRoutes {
  /// Learns from a report that says what is known: that an address works of which nothing is held against. Nearly all
  /// reports are of that kind, so this is where they cost next to nothing.
  ///
  /// - Returns: whether the report is of that kind.
  mutating func recordNoNews(
    _ report: RouteReport, _ outcome: CallOutcome?, at now: MonotonicInstant
  ) -> Bool {
    guard let settled, report.legs.count == 1, report.legs[0].address == settled.address,
      report.legs[0].reused, report.legs[0].outcome == .won
    else { return false }
    // Otherwise the plan may have taken the one attempt of a half-open endpoint.
    guard report.plan.legs[0].address == settled.address || report.plan.legs[0].source == .dns else {
      return false
    }
    let wait: Duration?
    switch outcome {
    case nil: wait = nil
    case .answered(let time): wait = time
    default: return false
    }
    switch settled.place {
    case .endpoint(let index):
      _ = endpoints[index].health.succeeded(connect: nil, ready: nil, at: now)
      if let wait { answered(index, after: wait, at: now) }
    case .answer(let index): _ = answers[index].health.succeeded(connect: nil, ready: nil, at: now)
    }
    return true
  }

  /// The least time without an answer that is a failure, when it is not known how long answers take.
  private static let longestSilence: Int64 = 1_000_000_000
  /// The same, when it is known.
  private static let shortestSilence: Int64 = 250_000_000

  /// What became of a call, as far as it says something: one whose time was over before an answer could be missed is the
  /// caller's doing. A second without one is silence; less is where answers usually take less than half of it.
  func weighed(
    _ outcome: CallOutcome?, of report: RouteReport, from begun: MonotonicInstant?, at now: MonotonicInstant
  ) -> CallOutcome? {
    guard outcome == .silent, let begun, let winner = report.winner else { return outcome }
    let usual = winner.address.map(silenceBound(of:)) ?? Self.longestSilence
    let silence = (now - (begun + winner.ended)).nanoseconds
    return silence < min(usual, Self.longestSilence) ? .unknown : outcome
  }

  /// After what time, in nanoseconds, an answer of an address is missed: twice what is usual, or a second when nothing is.
  func silenceBound(of address: IPAddress) -> Int64 {
    let trip = health(of: address)?.roundTrip?.smoothedNanoseconds ?? 0
    return usual.bound.map { max(Self.shortestSilence, 2 * ($0 + trip)) } ?? Self.longestSilence
  }

  /// Learns from a call's legs, and from how it went on.
  ///
  /// - Parameters:
  ///   - begun: when the call began, from which the times of the legs count.
  ///   - isFrozen: whether nothing that failed is held against an endpoint, because the network did.
  mutating func record(
    _ report: RouteReport, _ outcome: CallOutcome?, from begun: MonotonicInstant?, isFrozen: Bool,
    at now: MonotonicInstant,
    using random: inout SplitMix64
  ) {
    // A warm-up ends where its first leg is ready: nothing is sent, and no leg has won.
    let winner = report.winner ?? report.legs.first { $0.outcome == .lost }
    for leg in report.legs {
      guard let address = leg.address else { continue }
      // An endpoint that was seen to work after this leg began is not to blame for what it was like before.
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
        guard let failure = leg.failure, !isFrozen else { continue }
        failed(
          address, failure, as: fault(of: leg, failure), from: begun.map { $0 + leg.started } ?? now,
          at: now, using: &random)
      case .cancelled:
        guard let winner, !isFrozen, Self.hasBeenOvertaken(leg, by: winner, report.plan) else { continue }
        let kind = leg.connected == nil ? LegFailure.Kind.connectTimeout : .tlsTimeout
        let failure = LegFailure(kind, "not ready when a leg that began later was")
        failed(address, failure, from: now, at: now, using: &random)
      }
    }
    // The one attempt of a half-open endpoint is in the first leg. Whatever became of that, it is over; a report of
    // an older plan may give it back early, which lets one more attempt through.
    if case .address(let first) = report.plan.legs.first?.target, index(of: first) != nil {
      update(first, at: now) { $0.giveBack(at: now) }
    }
    if let winner, let address = winner.address { won(address, from: winner.source) }
  }

  /// Learns what a call showed that shared the legs of another one.
  mutating func record(
    shared outcome: CallOutcome, from address: IPAddress, at now: MonotonicInstant,
    using random: inout SplitMix64
  ) {
    let leg = RouteReport.Leg(
      address: address, source: .list, started: .zero, ended: .zero, outcome: .won, reused: true)
    won(leg, address, outcome, isFrozen: false, at: now, using: &random)
  }

  /// Learns from a probe.
  ///
  /// - Parameter isFrozen: whether a failure is held against nobody, because the network is suspected or the endpoint was seen to work since.
  mutating func record(
    probe result: Result<ConnectReport, LegError>, of address: IPAddress, isFrozen: Bool,
    at now: MonotonicInstant, using random: inout SplitMix64
  ) {
    switch result {
    case .success(let report):
      let connect = report.reused ? nil : report.connect
      let showsNothing = isSecure && report.tls == nil && !report.reused
      update(address, at: now) { health in
        if !report.reused, !showsNothing { health.triedConnection(works: true, at: now) }
        if showsNothing {
          health.measured(connect: connect, at: now)
          _ = health.giveBack(at: now, byProbe: true)
          return true
        }
        // A probe always verifies. Who opened a pooled connection did so as well, but some time ago.
        let isRelease = !report.reused && health.verified()
        let ready = report.reused ? nil : report.ready
        let isNews = health.succeeded(connect: connect, ready: ready, answered: false, at: now)
        let isGivenBack = health.giveBack(at: now, byProbe: true)
        return isRelease || isNews || isGivenBack
      }
    case .failure(let error):
      if error.isCancellation || isFrozen {
        update(address, at: now) { $0.giveBack(at: now, byProbe: true) }
      } else {
        if Blame(error.failure.kind) == .endpoint {
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

  /// It was this machine's network: what failures since a moment have changed is undone.
  mutating func forgive(since moment: MonotonicInstant, at now: MonotonicInstant) {
    settled = nil
    var isForgiven = false
    for index in endpoints.indices where endpoints[index].health.forgive(since: moment) { isForgiven = true }
    // All at once: it is the network that failed, and with it many of them.
    if isForgiven { reassessAll(at: now) }
    for index in answers.indices { _ = answers[index].health.forgive(since: moment) }
  }

  // MARK: One leg

  /// A leg was ready first and carried the request.
  private mutating func won(
    _ leg: RouteReport.Leg, _ address: IPAddress, _ outcome: CallOutcome?, isFrozen: Bool,
    at now: MonotonicInstant, using random: inout SplitMix64
  ) {
    let (connect, ready) = times(leg)
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
        // That its endpoint is silent is known: who found it out has taken the request from there.
        if failure.kind == .silent { break }
        // The others are of the connection that was to take its place, which was never ready.
        let fault = failure.kind == .reset ? Circuit.Fault.broke : .unreachable
        failed(address, failure, as: fault, from: now, at: now, using: &random)
        break
      }
      let (what, fault): (String, Circuit.Fault) =
        outcome == .silent
        ? ("it did not answer a request in time", .useless)
        : ("it gave no whole answer to a request", .broke)
      serviceFailed(address, connect, ready, what, as: fault, nil, at: now, using: &random)
    }
    measured(leg, address, at: now, using: &random)
  }

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

  private mutating func failed(
    _ address: IPAddress, _ failure: LegFailure, as fault: Circuit.Fault = .unreachable,
    from begun: MonotonicInstant?, at now: MonotonicInstant, using random: inout SplitMix64
  ) {
    let host = origin.host
    let pace = quarantinePace(of: address)
    update(address, at: now) {
      $0.failed(failure, of: host, as: fault, from: begun, pace: pace, at: now, using: &random)
    }
  }

  /// How soon a wrong certificate of an address is checked again. Addresses that only DNS has are not probed.
  private func quarantinePace(of address: IPAddress) -> Quarantine.Pace {
    Quarantine.Pace(isProbed: isProbed && index(of: address) != nil)
  }

  /// Whether a leg of a plan shows that an endpoint in quarantine has the right certificate again: its connection was new,
  /// its certificate was verified, and that was after the last failure.
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

  /// An answer of an endpoint began.
  private mutating func answered(_ index: Int, after wait: Duration, at now: MonotonicInstant) {
    if endpoints[index].health.answered(after: wait.nanoseconds, of: index, usual: &usual, at: now) {
      reassess(index, at: now)
    }
  }

  /// What a leg's connection took, when it opened one.
  private func times(_ leg: RouteReport.Leg) -> (connect: Duration?, ready: Duration?) {
    guard !leg.reused else { return (nil, nil) }
    let ready = isSecure ? leg.secured : leg.connected
    return (leg.connected.map { $0 - leg.started }, ready.map { $0 - leg.started })
  }

  /// How a leg failed: whether its connection was ready, and if so whether it broke or stayed silent.
  private func fault(of leg: RouteReport.Leg, _ failure: LegFailure) -> Circuit.Fault {
    guard leg.reused || (isSecure ? leg.secured : leg.connected) != nil else { return .unreachable }
    return failure.kind == .silent ? .useless : .broke
  }

  private mutating func measured(
    _ leg: RouteReport.Leg, _ address: IPAddress, at now: MonotonicInstant, using random: inout SplitMix64
  ) {
    guard times(leg).ready != nil, let index = index(of: address) else { return }
    noteMeasured(index, at: now, using: &random)
  }

  /// Whether a leg that did not come to an end had used up its time when one that began after it won.
  private static func hasBeenOvertaken(
    _ leg: RouteReport.Leg, by winner: RouteReport.Leg, _ plan: RoutePlan
  ) -> Bool {
    guard leg.started < winner.started else { return false }
    let planned = plan.legs.first { $0.target == leg.address.map { .address($0) } }
    return leg.ended - leg.started >= planned?.stagger ?? .defaultStagger
  }
}
