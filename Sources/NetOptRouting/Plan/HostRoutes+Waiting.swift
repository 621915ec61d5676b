import NetOptCore

/// The responses of an origin that began while the planner suspected one of the origin's endpoints of being
/// silent. They show whether other endpoints answer the kinds of requests that wait at the suspected
/// endpoint.
struct AnswersElsewhere: Sendable {
  /// The last response to the requests of one kind (`RequestKind`).
  private struct Answer {
    /// The endpoint that responded.
    let address: IPAddress
    /// When the call of the request began.
    let begun: MonotonicInstant
    /// The time from the last byte of the request to the first byte of the response.
    let wait: Duration
  }

  /// The maximum number of remembered request kinds.
  private static let most = 64

  /// The last response to each kind of request.
  private var answers: [RequestKind: Answer] = [:]

  /// Remembers a response. When a further kind of request would exceed `most`, forgets all other responses
  /// first.
  mutating func add(
    _ kind: RequestKind, of address: IPAddress, after wait: Duration, from begun: MonotonicInstant
  ) {
    if answers.count >= Self.most, answers[kind] == nil { answers.removeAll(keepingCapacity: true) }
    answers[kind] = Answer(address: address, begun: begun, wait: wait)
  }

  /// Whether the last response to a request of this kind came from another endpoint than `address` within
  /// `time`, in a call that began at `since` or later.
  func has(_ kind: RequestKind, notOf address: IPAddress, within time: Duration, since: MonotonicInstant)
    -> Bool
  {
    answers[kind].map { $0.address != address && $0.begun >= since && $0.wait <= time } ?? false
  }
}

// Finds endpoints that accept requests and do not respond (docs/adr/0029).
extension HostRoutes {
  /// The maximum time from the arrival of response data until netopt reads the data. Data that netopt reads
  /// within this time after it sent a request may respond to an earlier request.
  private static let readingTime = Duration.milliseconds(10)

  /// Whether the planner suspects some of the origin's endpoints of being silent, or has found that they are.
  var hasSuspectedEndpoints: Bool { endpoints.contains { $0.health.isSuspected } }

  /// Learns from the requests that wait for responses.
  ///
  /// - Parameters:
  ///   - waiting: all waiting requests of the origin, with their positions in the array that
  ///     `RoutePlanner.observe` got.
  ///   - isFrozen: whether silence counts against no endpoint, because the planner suspects this machine's
  ///     network.
  ///   - probes: whether the caller opens the new connections that the findings ask for.
  ///   - findings: the function adds the actions to take to these findings.
  mutating func observe(
    waiting: [(position: Int, request: WaitingRequest)], isFrozen: Bool, probes: Bool,
    into findings: inout WaitFindings, at now: MonotonicInstant, using random: inout SplitMix64
  ) {
    let byAddress = Dictionary(grouping: waiting) { $0.request.address }
    for index in endpoints.indices
    where byAddress[addresses[index]] != nil || endpoints[index].health.isSuspected {
      let address = addresses[index]
      let own = byAddress[address] ?? []
      let limit = silenceLimit(of: index, at: now)
      // A lost request is late at once, whatever the usual response time is.
      let late = own.filter {
        $0.request.delivery == .lost || now - max($0.request.sent, $0.request.lastReceived) >= limit
      }
      let lost = lost(late, of: index, at: now)
      let positions = Set(lost.map(\.position))
      findings.taken += lost
      let evidence = late.map(\.request).filter { isEvidence($0, against: index) }
      guard !isFrozen, let first = evidence.map(\.sent).min() else {
        update(address, at: now) { $0.clearSilence() }
        continue
      }
      if endpoints[index].health.silence == nil {
        // An endpoint that failed before is probed only when its circuit breaker allows an attempt.
        let isProbed = probes && endpoints[index].health.state(at: now) == .closed
        suspect(index, since: first, limit, isProbed: isProbed, at: now)
        if isProbed { findings.probes += self.probes(of: index, at: now) }
      }
      // Unacknowledged data may still be on its way, or lost with its connection. With the second
      // retransmission, `delivery` changes from `pending` to `lost`; until then nothing is decided.
      if endpoints[index].health.silence?.connection == .works,
        evidence.contains(where: { $0.delivery == .pending })
      {
        continue
      }
      judge(index, evidence, limit, at: now, using: &random)
      guard let silence = endpoints[index].health.silence, silence.isCertain else { continue }
      findings.silent.append(SilentEndpoint(origin: origin, address: address))
      let failure = silence.failure(of: evidence, at: now)
      let attempt = leastAttempt(besides: index)
      for (position, request) in late
      where !positions.contains(position) && mayBeTaken(request, silence, attempt, at: now) {
        findings.taken.append(
          TakenRequest(
            position: position, failure: failure, isUnacknowledged: request.delivery != .acknowledged))
      }
    }
    if !hasSuspectedEndpoints { elsewhere = AnswersElsewhere() }
  }

  /// Returns those of the late requests that are lost (`WaitingRequest.Delivery.lost`) and should be sent
  /// again, because an endpoint was seen to work since the request was sent. If this endpoint itself was seen
  /// to work, only the connection of the request is dead.
  private func lost(
    _ late: [(position: Int, request: WaitingRequest)], of index: Int, at now: MonotonicInstant
  ) -> [TakenRequest] {
    let lost = late.filter { $0.request.delivery == .lost && $0.request.mayMove }
    if lost.isEmpty { return [] }
    let (attempt, attemptElsewhere) = (leastAttempt(), leastAttempt(besides: index))
    return lost.compactMap { position, request in
      let isOfConnection = isLostWithConnection(request, at: index)
      guard isOfConnection || hasWorkingEndpoint(besides: index, since: request.sent),
        hasTime(request, isOfConnection ? attempt : attemptElsewhere, at: now)
      else { return nil }
      let wait = (now - request.sent).nanoseconds / 1_000_000
      let failure = LegFailure(
        .silent,
        "its connection is dead: it acknowledged no data in \(wait) ms, and "
          + (isOfConnection ? "the endpoint works" : "another endpoint works"))
      return TakenRequest(
        position: position, failure: failure, isUnacknowledged: true, isOfConnection: isOfConnection)
    }
  }

  /// Whether a request was lost only because its connection is dead: its endpoint was seen to work since the
  /// request was sent. The loss then does not count against the endpoint.
  private func isLostWithConnection(_ request: WaitingRequest, at index: Int) -> Bool {
    request.delivery == .lost && endpoints[index].health.hasWorked(since: request.sent)
  }

  /// How long a request may wait at an endpoint before the planner suspects the endpoint:
  /// `silenceBound(of:)`, and longer for a while after wrong suspicions of the endpoint.
  private func silenceLimit(of index: Int, at now: MonotonicInstant) -> Duration {
    endpoints[index].health.suspicionBackoff.extended(
      .nanoseconds(silenceBound(of: addresses[index])), at: now)
  }

  /// Whether a waiting request is evidence that its endpoint is silent. The request must have been sent
  /// whole, or the part that was sent must be lost. No part of any response may have come from the endpoint
  /// since the request was sent. Other data, such as session tickets or SETTINGS frames, is no response.
  private func isEvidence(_ request: WaitingRequest, against index: Int) -> Bool {
    let health = endpoints[index].health
    return (request.isWhole || request.delivery == .lost) && !isLostWithConnection(request, at: index)
      && request.answered.map { request.sent + Self.readingTime >= $0 } ?? true
      && request.sent > health.lastAnswered && request.sent > health.suspicionBackoff.evidenceStart
  }

  /// Begins to suspect an endpoint of being silent.
  ///
  /// - Parameters:
  ///   - first: when the first of the waiting requests was sent.
  ///   - limit: the silence limit of the endpoint.
  ///   - isProbed: whether the planner asks for a new connection to the endpoint.
  private mutating func suspect(
    _ index: Int, since first: MonotonicInstant, _ limit: Duration, isProbed: Bool, at now: MonotonicInstant
  ) {
    let trial = max(Silence.shortestTrial, limit * 2)
    update(addresses[index], at: now) {
      $0.suspect(Silence(since: first, trialEnds: now + trial, isProbed: isProbed))
      return true
    }
  }

  /// The probe of a suspected endpoint and, for comparison, the probe of another endpoint. The other endpoint
  /// is the first in the ranking that is not suspected and has a closed circuit breaker.
  private func probes(of index: Int, at now: MonotonicInstant) -> [DueProbe] {
    let others = ranking.entries.lazy.map(\.index).filter {
      $0 != index && !endpoints[$0].health.isSuspected && endpoints[$0].health.state(at: now) == .closed
    }
    return ([index] + others.prefix(1)).map {
      DueProbe(origin: origin, address: addresses[$0], keepsConnection: false, checksCertificate: false)
    }
  }

  /// Decides that a suspected endpoint is silent, if the evidence suffices. Ends the suspicion if its time is
  /// over without a decision.
  private mutating func judge(
    _ index: Int, _ evidence: [WaitingRequest], _ limit: Duration, at now: MonotonicInstant,
    using random: inout SplitMix64
  ) {
    let health = endpoints[index].health
    guard var silence = health.silence, silence.verdict != .dead else { return }
    // An endpoint that failed before gets one attempt at a time, so one waiting request is enough evidence.
    let isBack = health.state(at: now) != .closed
    let isMany = evidence.count >= Silence.many || isBack
    let old = silence.verdict
    if silence.connection == .fails, hasWorkingEndpoint(besides: index, since: silence.since) {
      silence.verdict = .dead
    } else if isMany || silence.connection == .fails || silence.isCertain {
      var kinds = Set<RequestKind>()
      if case .silent(let known) = old { kinds = known }
      for request in evidence
      where elsewhere.has(request.kind, notOf: addresses[index], within: limit, since: silence.since) {
        kinds.insert(request.kind)
      }
      if !kinds.isEmpty { silence.verdict = .silent(kinds) }
    }
    if silence.verdict != old {
      let failure = silence.failure(of: evidence, at: now)
      update(addresses[index], at: now) {
        $0.wentSilent(silence, failure, at: now, using: &random)
        return true
      }
    } else if !silence.isCertain, silence.isExpired(isMany: isMany, at: now) {
      update(addresses[index], at: now) { $0.suspicionExpired(isConclusive: !isBack, at: now) }
    }
  }

  /// Whether another endpoint was seen to work since a moment. It must be usable and not suspected.
  private func hasWorkingEndpoint(besides index: Int, since moment: MonotonicInstant) -> Bool {
    ranking.entries.contains {
      $0.index != index && !endpoints[$0.index].health.isSuspected
        && endpoints[$0.index].health.hasWorked(since: moment)
    }
  }

  /// Whether a request may be taken from its silent endpoint and sent to another one: the silence concerns
  /// the request (`Silence.concerns`), the request was sent whole and may move, and its call has enough time
  /// left.
  private func mayBeTaken(
    _ request: WaitingRequest, _ silence: Silence, _ attempt: Duration?, at now: MonotonicInstant
  ) -> Bool {
    // A request that was not sent whole stays: it may still be on its way.
    request.mayMove && request.isWhole && silence.concerns(request)
      && hasTime(request, attempt, at: now)
  }

  /// Whether a request's call has enough time left for another attempt. A call without a deadline always has.
  ///
  /// - Parameter attempt: the shortest duration of an attempt; `nil` when there is no endpoint for it.
  private func hasTime(_ request: WaitingRequest, _ attempt: Duration?, at now: MonotonicInstant) -> Bool {
    guard let deadline = request.deadline else { return true }
    return attempt.map { now + $0 + Silence.margin < deadline } ?? false
  }

  /// The time that another attempt takes at least: the shortest stagger of the usable endpoints, within which
  /// nearly every connection to the quickest one is ready. `nil` when no endpoint is usable.
  ///
  /// - Parameter index: the index of an endpoint to leave out.
  private func leastAttempt(besides index: Int? = nil) -> Duration? {
    ranking.entries.lazy.filter { $0.index != index }
      .map { stagger(endpoints[$0.index].health.readiness(secure: isSecure)) }.min()
  }
}

extension Silence {
  /// The failure of a silent endpoint, with its message for users.
  fileprivate func failure(of evidence: [WaitingRequest], at now: MonotonicInstant) -> LegFailure {
    let wait = (now - since).nanoseconds / 1_000_000
    let count = evidence.count
    let what =
      count == 1 ? "a request waited for its response" : "\(count) requests waited for their responses"
    let why =
      verdict == .dead
      ? "a new connection failed as well, and other endpoints work" : "other endpoints answer such requests"
    return LegFailure(.silent, "it went silent: \(what) for \(wait) ms at most; \(why)")
  }
}
