/// The route of a call to its connection, and the reasons for it: the plan, the result of each leg, and the
/// winning leg.
public struct RouteReport: Sendable {
  /// The result of a leg.
  public enum Outcome: String, Hashable, Sendable {
    /// The leg's connection was ready first and carried the request.
    case won
    /// The leg's connection was ready, but another leg had already won.
    case lost
    /// The leg failed.
    case failed
    /// The leg was still under way when another leg won or the call ended.
    case cancelled
  }

  /// The reason why a call that uses the list fell back to DNS.
  ///
  /// A call does not use the list in five cases: a proxy is set, the caller asked for DNS or pinned an address
  /// that is not listed, the list has the host for another port, the list does not have the host, or the list
  /// has expired. Such a call has no `Fallback`.
  public enum Fallback: String, Hashable, Sendable {
    /// Each endpoint of the list that the call tried failed. Or the race tried no listed endpoint because it
    /// began with DNS: this can happen in a retry, in a hedge, or in a call that waited for another call's
    /// race.
    case allFailed = "all-failed"
    /// No endpoint of the list was usable, and the circuit breaker of at least one excluded it: it was open,
    /// or half-open with its one attempt under way. The others may have been excluded for other reasons. The
    /// call tried DNS and, at the same time, one of the endpoints that circuit breakers excluded. There are
    /// two exceptions. A call that waited for another call's race may begin with the address that won that
    /// race, alone. A retry that avoids the endpoint tries it last, and a hedge does not try it.
    case circuitsOpen = "circuits-open"
    /// All endpoints of the list were excluded, none by its circuit breaker. The reasons are a wrong
    /// certificate and the wrong IP version.
    case excluded
    /// The call tried an endpoint of the list that neither failed nor won the race. A connection to an
    /// address from DNS was ready first, or the call ended first. Slow responses do not lead to this reason.
    case noAnswerInTime = "no-answer-in-time"
  }

  /// One leg that was started. All times are offsets from the start of the call.
  public struct Leg: Hashable, Sendable {
    /// The address of the leg; `nil` for a leg to a proxy, and for a DNS look-up that failed or was
    /// cancelled.
    public var address: IPAddress?
    /// The source of the address.
    public var source: AddressSource
    /// When the leg started.
    public var started: Duration {
      get { .nanoseconds(startedNanoseconds) }
      set { startedNanoseconds = newValue.nanoseconds }
    }
    /// When TCP was connected; `nil` if it was not, or if the leg used a pooled connection.
    public var connected: Duration? {
      get { connectedNanoseconds.map { .nanoseconds($0) } }
      set { connectedNanoseconds = newValue?.nanoseconds }
    }
    /// When the TLS handshake completed; `nil` if it did not, without TLS, or if the leg used a pooled
    /// connection.
    public var secured: Duration? {
      get { securedNanoseconds.map { .nanoseconds($0) } }
      set { securedNanoseconds = newValue?.nanoseconds }
    }
    /// When the leg ended or won.
    public var ended: Duration {
      get { .nanoseconds(endedNanoseconds) }
      set { endedNanoseconds = newValue.nanoseconds }
    }
    // The same times in nanoseconds. A `Duration` has 128 bits, and each waiting call holds a report.
    package var startedNanoseconds: Int64
    package var connectedNanoseconds: Int64?
    package var securedNanoseconds: Int64?
    package var endedNanoseconds: Int64
    /// The result of the leg.
    public var outcome: Outcome
    /// The failure of the leg; `nil` if the leg did not fail. The winning leg has a failure if its connection
    /// failed after the request was sent and before a response began, unless libcurl was about to send a request
    /// again that may not be repeated.
    public var failure: LegFailure?
    /// Whether the leg used a pooled connection and opened none.
    public var reused: Bool
    /// The leg's index in `Race.legs`.
    package var index: Int {
      get { Int(storedIndex) }
      set { storedIndex = Int32(newValue) }
    }
    /// `index` in 32 bits, to keep the report small.
    private var storedIndex: Int32 = 0

    /// Creates the report of a leg that has just started.
    package init(
      address: IPAddress?, source: AddressSource, startedNanoseconds: Int64, outcome: Outcome, index: Int
    ) {
      self.address = address
      self.source = source
      self.startedNanoseconds = startedNanoseconds
      endedNanoseconds = startedNanoseconds
      self.outcome = outcome
      reused = false
      storedIndex = Int32(index)
    }

    /// Returns a copy whose times are offsets from the start of a second call, which began later and shares
    /// the leg. Times before the start of the second call become zero.
    ///
    /// - Parameter delay: how long after the first call the second call began.
    package func seen(after delay: Duration) -> Leg {
      var leg = self
      func shifted(_ offset: Int64) -> Int64 { max(0, offset.subtractingClamped(delay.nanoseconds)) }
      leg.startedNanoseconds = shifted(startedNanoseconds)
      leg.connectedNanoseconds = connectedNanoseconds.map(shifted)
      leg.securedNanoseconds = securedNanoseconds.map(shifted)
      leg.endedNanoseconds = shifted(endedNanoseconds)
      return leg
    }

    /// Creates a report of a leg.
    package init(
      address: IPAddress?, source: AddressSource, started: Duration, connected: Duration? = nil,
      secured: Duration? = nil, ended: Duration, outcome: Outcome, failure: LegFailure? = nil,
      reused: Bool = false
    ) {
      self.address = address
      self.source = source
      startedNanoseconds = started.nanoseconds
      connectedNanoseconds = connected?.nanoseconds
      securedNanoseconds = secured?.nanoseconds
      endedNanoseconds = ended.nanoseconds
      self.outcome = outcome
      self.failure = failure
      self.reused = reused
    }
  }

  /// An endpoint of the list that the policy considered for this request.
  public struct Candidate: Hashable, Sendable {
    /// The address.
    public let address: IPAddress
    /// The endpoint's score: the smoothed time until its connection is ready, plus the time by which its
    /// responses begin later than usual for the origin, plus penalties. Lower is better; `nil` without
    /// history.
    public let score: Duration?
    /// The source of the address.
    public let source: AddressSource
    /// Why the endpoint was excluded when the plan was made, or `nil` if it was not. If the circuit breaker
    /// excluded the endpoint, the plan may still have a leg to it as a last resort, after DNS. With
    /// `Fallback.circuitsOpen`, the plan's first endpoint has `nil` here, even though its circuit breaker
    /// excludes it.
    public let excluded: ExclusionReason?
    /// The certificate failure for which the endpoint is not tried, or `nil` if it is tried or excluded for
    /// another reason.
    public var failure: LegFailure.Kind? {
      if case .certificate(let failure, _, _) = excluded { failure.kind } else { nil }
    }

    /// Creates a candidate.
    package init(
      _ address: IPAddress, score: Duration?, source: AddressSource, excluded: ExclusionReason? = nil
    ) {
      self.address = address
      self.score = score
      self.source = source
      self.excluded = excluded
    }
  }

  /// The plan of the call. Its race started some or all legs of the plan.
  package var plan: RoutePlan
  /// The legs that were started, in starting order.
  public var legs: [Leg]
  /// Whether this call waited for another call's race and that race failed. `legs` then has the legs of that
  /// race. The planner counts these legs only for the call that ran the race. Times before the start of this
  /// call are zero.
  public var isShared = false

  /// The endpoints of the list that the policy considered, best first.
  public var candidates: [Candidate] { plan.candidates }

  /// The port for which the IP list has the host, if the list was not used because the URL has another port;
  /// otherwise `nil`.
  public var listedPort: UInt16? { plan.listedPort }

  /// Creates a report.
  package init(plan: RoutePlan, legs: [Leg]) {
    self.plan = plan
    self.legs = legs
  }

  /// The leg that carried the request, or `nil`.
  public var winner: Leg? { legs.first { $0.outcome == .won } }

  /// The source of the address that carried the request.
  ///
  /// Without a winner, the source is DNS if the call tried DNS, even if it tried endpoints of the list
  /// afterwards as last resorts. Without legs the source is DNS too, for example if the cache served the
  /// response and the call sent no request.
  public var source: AddressSource {
    if let winner { return winner.source }
    return legs.contains { $0.source == .dns } ? .dns : legs.last?.source ?? .dns
  }

  /// Why a call that uses the list fell back to DNS. `nil` if the call did not fall back to DNS, if it does
  /// not use the list, or if no leg was started.
  public var fallback: Fallback? {
    guard !legs.isEmpty, source == .dns, plan.directOff == nil, plan.hasCandidates else { return nil }
    if let reason = plan.noneUsable { return reason }
    let listed = legs.filter { $0.source == .list }
    return listed.contains { $0.outcome != .failed } ? .noAnswerInTime : .allFailed
  }
}
