/// The way a call took, and why: the plan, what became of each leg, and what won.
public struct RouteReport: Sendable {
  /// What became of a leg.
  public enum Outcome: String, Hashable, Sendable {
    /// It was ready first and carried the request.
    case won
    /// It was ready, but another one was before it.
    case lost
    /// It failed.
    case failed
    /// It was still under way when another one won, or the call ended.
    case cancelled
  }

  /// Why DNS was used although the list has the host.
  public enum Fallback: String, Hashable, Sendable {
    /// Every listed endpoint that was tried failed.
    case allFailed = "all-failed"
    /// The circuits of all listed endpoints are open.
    case circuitsOpen = "circuits-open"
    /// All listed endpoints are excluded.
    case excluded
    /// DNS was ready before a listed endpoint that was still under way.
    case noAnswerInTime = "no-answer-in-time"
  }

  /// One leg that was started. Times are offsets from the start of the call.
  public struct Leg: Hashable, Sendable {
    /// The address, or `nil` for a look-up that failed.
    public var address: IPAddress?
    /// Where the address came from.
    public var source: AddressSource
    /// When the leg started.
    public var started: Duration {
      get { .nanoseconds(startedNanoseconds) }
      set { startedNanoseconds = newValue.nanoseconds }
    }
    /// When TCP was connected; `nil` when it was not, or when a pooled connection was used.
    public var connected: Duration? {
      get { connectedNanoseconds.map { .nanoseconds($0) } }
      set { connectedNanoseconds = newValue?.nanoseconds }
    }
    /// When the TLS handshake was done; `nil` when it was not, without TLS, or on a pooled connection.
    public var secured: Duration? {
      get { securedNanoseconds.map { .nanoseconds($0) } }
      set { securedNanoseconds = newValue?.nanoseconds }
    }
    /// When the leg ended or won.
    public var ended: Duration {
      get { .nanoseconds(endedNanoseconds) }
      set { endedNanoseconds = newValue.nanoseconds }
    }
    // As in `Timings`; and a call that waits has a report.
    package var startedNanoseconds: Int64
    package var connectedNanoseconds: Int64?
    package var securedNanoseconds: Int64?
    package var endedNanoseconds: Int64
    /// What became of it.
    public var outcome: Outcome
    /// Why it failed; of a leg that won, why its connection failed after the request was sent and before an answer began.
    public var failure: LegFailure?
    /// Whether it was ready on a pooled connection.
    public var reused: Bool
    /// Its index in the race.
    package var index: Int {
      get { Int(place) }
      set { place = Int32(newValue) }
    }
    private var place: Int32 = 0

    /// Makes the report of a leg that has just started.
    package init(
      address: IPAddress?, source: AddressSource, startedNanoseconds: Int64, outcome: Outcome, index: Int
    ) {
      self.address = address
      self.source = source
      self.startedNanoseconds = startedNanoseconds
      endedNanoseconds = startedNanoseconds
      self.outcome = outcome
      reused = false
      place = Int32(index)
    }

    /// The leg as a call sees it that began later.
    ///
    /// - Parameter delay: how much later.
    package func seen(after delay: Duration) -> Leg {
      var leg = self
      func shifted(_ offset: Int64) -> Int64 { max(0, offset.subtractingClamped(delay.nanoseconds)) }
      leg.startedNanoseconds = shifted(startedNanoseconds)
      leg.connectedNanoseconds = connectedNanoseconds.map(shifted)
      leg.securedNanoseconds = securedNanoseconds.map(shifted)
      leg.endedNanoseconds = shifted(endedNanoseconds)
      return leg
    }

    /// Makes a leg's report.
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

  /// An endpoint of the list that was weighed for this request.
  public struct Candidate: Hashable, Sendable {
    /// The address.
    public let address: IPAddress
    /// What it was weighed with: its smoothed time to be ready, by how much its answers begin later than is usual,
    /// and penalties; `nil` without history.
    public let score: Duration?
    /// Where the address came from.
    public let source: AddressSource
    /// Why it is not in the plan, or `nil` when it is.
    public let excluded: ExclusionReason?
    /// The failure for which it is not tried at all, or `nil` when something else keeps it out of the plan.
    public var failure: LegFailure.Kind? {
      if case .certificate(let kind, _, _, _) = excluded { kind } else { nil }
    }

    /// Makes a candidate.
    package init(
      _ address: IPAddress, score: Duration?, source: AddressSource, excluded: ExclusionReason? = nil
    ) {
      self.address = address
      self.score = score
      self.source = source
      self.excluded = excluded
    }
  }

  /// The plan that was performed.
  package var plan: RoutePlan
  /// The legs that were started, in the order in which they were.
  public var legs: [Leg]
  /// Whether the legs are those of another call, for whose race this one waited. They count once, with that call. What of
  /// them was before this call is at its start.
  public var isShared = false

  /// The endpoints of the list that were weighed, best first.
  public var candidates: [Candidate] { plan.candidates }

  /// Makes a report.
  package init(plan: RoutePlan, legs: [Leg]) {
    self.plan = plan
    self.legs = legs
  }

  /// The leg that carried the request, when one did.
  public var winner: Leg? { legs.first { $0.outcome == .won } }

  /// Where the address that was used came from.
  ///
  /// Without a winner it is DNS when that was asked, whatever was tried after it as a last resort.
  public var source: AddressSource {
    if let winner { return winner.source }
    return legs.contains { $0.source == .dns } ? .dns : legs.last?.source ?? .dns
  }

  /// Why DNS was used although the list has the host, or `nil`.
  public var fallback: Fallback? {
    guard !legs.isEmpty, source == .dns, plan.directOff == nil, plan.hasCandidates else { return nil }
    if let reason = plan.withoutList { return reason }
    let listed = legs.filter { $0.source == .list }
    return listed.contains { $0.outcome != .failed } ? .noAnswerInTime : .allFailed
  }
}
