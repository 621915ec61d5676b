/// The source of a leg's address: the IP list, or anything else.
public enum AddressSource: String, Hashable, Sendable, BitwiseCopyable {
  /// The IP list.
  case list
  /// Any source other than the list, usually DNS. These legs have this source too: a leg through a proxy, a
  /// leg to the IP address in a URL, and a leg to a pinned address that the list does not contain. So does a
  /// `RouteReport` without legs.
  case dns
}

/// The endpoints that a policy considered, with their scores, in the policy's own representation. They are
/// converted to candidates only when a caller reads the candidates.
package protocol CandidateSource: Sendable {
  /// Whether there are no endpoints.
  var isEmpty: Bool { get }
  /// Converts the endpoints to candidates.
  func candidates() -> [RouteReport.Candidate]
}

/// The endpoints to try for one request, in order, with the reasons for that order. A policy creates a plan
/// and a `Transport` performs it.
@usableFromInline
package struct RoutePlan: Sendable {
  /// Who chose the legs. The first three cases are the policies of `RoutingConfiguration`. A plan that uses
  /// no listed endpoint also has one of these: the configured policy, or `pinned` if the caller named the
  /// address.
  package enum Policy: String, Hashable, Sendable {
    /// The policy `fastest` chose the legs.
    case fastest
    /// The policy `balanced` chose the legs.
    case balanced
    /// The policy `pinned` chose the legs, or the caller named the address.
    case pinned
    /// A probe chose the legs.
    case probe
    /// The cache made the response, and the call sent no request.
    case cache
    /// An interceptor made the response, and the call sent no request.
    case interceptor = "none"
  }

  /// The reason why direct mode is off for a request: the planner does not consult the list.
  package enum DirectOff: String, Hashable, Sendable {
    /// A proxy is configured.
    case proxy
    /// The caller chose DNS, or pinned an address that is not in the list.
    case requested = "flag"
    /// The list's entry is for a different port.
    case port
    /// There is no list, or the list has no endpoint for the host, or the URL's host is an IP address.
    case noList = "no-list"
    /// The list has expired.
    case expired
  }

  /// One connection attempt of a race: a target and when to start. A leg contains no reference, so that
  /// copying it changes no reference count. A plan may have a hundred legs, and each change of an endpoint's
  /// health leads to a new plan.
  @usableFromInline
  package struct Leg: Hashable, Sendable, BitwiseCopyable {
    /// The target of a leg.
    package enum Target: Hashable, Sendable, BitwiseCopyable {
      /// An address to connect to directly.
      case address(IPAddress)
      /// The addresses that the resolver returns when the leg starts.
      case dns
      /// The plan's HTTP or SOCKS proxy. The proxy resolves the host name; for SOCKS4 and SOCKS5 without
      /// remote names, this machine does.
      case proxy
    }

    /// The target of the leg.
    package let target: Target
    /// Where the leg's address comes from.
    package let source: AddressSource
    /// The stagger in nanoseconds; its bitwise complement if the leg `startsAlone`. A separate Boolean would
    /// add 8 bytes to each leg.
    private let timing: Int64

    /// Whether the leg starts only when no other leg is under way. Its endpoint accepts connections but does
    /// not serve requests, so its connection would win the race and be useless.
    ///
    /// Such a leg is one of the plan's last resorts. The other last resorts start like any other leg.
    package var startsAlone: Bool { timing < 0 }

    /// How long the leg may take to be ready before the race starts the next leg beside it.
    package var stagger: Duration { .nanoseconds(startsAlone ? ~timing : timing) }

    /// The address of the leg, or `nil` for DNS and the proxy.
    package var address: IPAddress? { if case .address(let address) = target { address } else { nil } }

    /// Creates a leg.
    package init(
      _ target: Target, source: AddressSource, stagger: Duration = .defaultStagger, startsAlone: Bool = false
    ) {
      self.target = target
      self.source = source
      let nanoseconds = max(0, stagger.nanoseconds)
      timing = startsAlone ? ~nanoseconds : nanoseconds
    }

    /// A copy of the leg that starts only when no other leg is under way.
    package var startingAlone: Leg { Leg(target, source: source, stagger: stagger, startsAlone: true) }
  }

  /// The properties of a plan, in one object, so that copying a plan copies one reference. Each request
  /// passes its plan through many functions, and each report copies it. `RoutePlan`'s getters describe the
  /// properties. The getters of the properties that every request reads are inlinable. Other modules would
  /// otherwise call the getter, which copies the property.
  @usableFromInline
  final class Storage: Sendable {
    @usableFromInline let origin: Origin
    let proxy: String?
    @usableFromInline let isSecure: Bool
    let policy: Policy
    let directOff: DirectOff?
    let listedPort: UInt16?
    let candidates: any CandidateSource
    @usableFromInline let legs: [Leg]
    let noneUsable: RouteReport.Fallback?
    let startsTwo: Bool
    @usableFromInline let multiplexes: Bool
    let suspectsNetwork: Bool
    let verifies: Bool
    let avoidance: Avoidance?

    init(
      _ origin: Origin, _ proxy: String?,
      _ policy: Policy, _ directOff: DirectOff?, _ listedPort: UInt16?, _ candidates: any CandidateSource,
      _ legs: [Leg], _ noneUsable: RouteReport.Fallback?, _ startsTwo: Bool, _ multiplexes: Bool,
      _ suspectsNetwork: Bool, _ verifies: Bool, _ avoidance: Avoidance?
    ) {
      self.origin = origin
      self.proxy = proxy
      isSecure = origin.scheme == .https
      self.policy = policy
      self.directOff = directOff
      self.listedPort = listedPort
      self.candidates = candidates
      self.legs = legs
      self.noneUsable = noneUsable
      self.startsTwo = startsTwo
      self.multiplexes = multiplexes
      self.suspectsNetwork = suspectsNetwork
      self.verifies = verifies
      self.avoidance = avoidance
    }
  }

  /// Candidates that were complete when the plan was made.
  private struct Candidates: CandidateSource {
    let all: [RouteReport.Candidate]
    var isEmpty: Bool { all.isEmpty }
    func candidates() -> [RouteReport.Candidate] { all }
  }

  @usableFromInline let storage: Storage

  /// The origin to connect to.
  @inlinable package var origin: Origin { storage.origin }
  /// The URL of the HTTP or SOCKS proxy, if a leg has the proxy as its target.
  package var proxy: String? { storage.proxy }
  /// Whether connections to the origin use TLS.
  @inlinable package var isSecure: Bool { storage.isSecure }
  /// Who chose the legs.
  package var policy: Policy { storage.policy }
  /// Why the planner did not consult the list for the request; `nil` if it did.
  package var directOff: DirectOff? { storage.directOff }
  /// The port for which the list has the host, if `directOff` is `port`; otherwise `nil`.
  package var listedPort: UInt16? { storage.listedPort }
  /// The list's endpoints with their scores. Each access computes the array again, so store the result to use
  /// it more than once.
  package var candidates: [RouteReport.Candidate] {
    avoidance?.marked(storage.candidates.candidates()) ?? storage.candidates.candidates()
  }
  /// Whether the policy considered any endpoint of the list. Does not compute the candidates.
  package var hasCandidates: Bool { !storage.candidates.isEmpty }
  /// The legs in starting order. Never empty.
  @inlinable package var legs: [Leg] { storage.legs }
  /// Why no endpoint of the list is usable. `nil` if one is usable, or if the request does not use the list.
  ///
  /// With `circuitsOpen`, the plan still begins with a listed endpoint, although its circuit breaker excludes
  /// it. With `excluded`, the plan has no leg to an endpoint of the list. The result of `avoiding(_:)`
  /// has the same value, but its legs may be in another order, and some may be missing.
  package var noneUsable: RouteReport.Fallback? { storage.noneUsable }
  /// Whether the first two legs start together. The planner sets this property when `noneUsable` is
  /// `circuitsOpen`. The first leg then goes to an endpoint that its circuit breaker excludes, because this
  /// endpoint may work again. The second leg is DNS. The result of `avoiding(_:)` keeps the property if it
  /// has at least two legs. These may be other legs than the endpoint and DNS.
  package var startsTwo: Bool { storage.startsTwo }
  /// Whether connections to this origin are expected to speak HTTP/2. A leg that loses the race then keeps
  /// its connection for later requests. On HTTP/1.1 libcurl closes the connection, so the race waits twice
  /// the stagger.
  @inlinable package var multiplexes: Bool { storage.multiplexes }
  /// Whether this machine's network is presumed down: several endpoints and DNS failed within seconds, and no
  /// request has succeeded since. Failures then count against no endpoint.
  package var suspectsNetwork: Bool { storage.suspectsNetwork }
  /// Whether the legs verify the server's certificate on TLS connections.
  package var verifies: Bool { storage.verifies }
  /// The addresses that the attempt with this plan avoids; `nil` if it avoids none, like the first attempt of
  /// a call.
  package var avoidance: Avoidance? { storage.avoidance }

  /// Creates a plan from candidates.
  ///
  /// - Precondition: there is at least one leg. If the first leg's target is the proxy, `proxy` is not `nil`.
  package init(
    origin: Origin, proxy: String? = nil,
    policy: Policy, directOff: DirectOff? = nil, listedPort: UInt16? = nil,
    candidates: [RouteReport.Candidate] = [], legs: [Leg],
    noneUsable: RouteReport.Fallback? = nil, startsTwo: Bool = false, multiplexes: Bool = true,
    suspectsNetwork: Bool = false, verifies: Bool = true, avoidance: Avoidance? = nil
  ) {
    self.init(
      origin: origin, proxy: proxy,
      policy: policy, directOff: directOff, listedPort: listedPort,
      candidateSource: Candidates(all: candidates), legs: legs,
      noneUsable: noneUsable, startsTwo: startsTwo, multiplexes: multiplexes,
      suspectsNetwork: suspectsNetwork, verifies: verifies, avoidance: avoidance)
  }

  /// Creates a plan whose candidates are computed when a caller reads them.
  ///
  /// - Precondition: there is at least one leg. If the first leg's target is the proxy, `proxy` is not `nil`.
  package init(
    origin: Origin, proxy: String? = nil,
    policy: Policy, directOff: DirectOff? = nil, listedPort: UInt16? = nil,
    candidateSource candidates: any CandidateSource, legs: [Leg], noneUsable: RouteReport.Fallback? = nil,
    startsTwo: Bool = false, multiplexes: Bool = true,
    suspectsNetwork: Bool = false, verifies: Bool = true, avoidance: Avoidance? = nil
  ) {
    precondition(!legs.isEmpty, "a plan has at least one leg")
    precondition(proxy != nil || legs[0].target != .proxy, "a plan that leads to a proxy says to which")
    storage = Storage(
      origin, proxy,
      policy, directOff, listedPort, candidates, legs, noneUsable, startsTwo, multiplexes, suspectsNetwork,
      verifies,
      avoidance)
  }

  /// Returns a copy of the plan with the given legs instead of its own, for an attempt that avoids some
  /// addresses.
  ///
  /// - Precondition: there is at least one leg.
  func with(_ legs: [Leg], avoiding avoidance: Avoidance) -> RoutePlan {
    RoutePlan(
      origin: origin, proxy: proxy,
      policy: policy, directOff: directOff, listedPort: listedPort, candidateSource: storage.candidates,
      legs: legs,
      noneUsable: noneUsable, startsTwo: startsTwo && legs.count > 1, multiplexes: multiplexes,
      suspectsNetwork: suspectsNetwork, verifies: verifies, avoidance: avoidance)
  }

  /// Whether both plans are the same object, not only equal.
  package func isIdentical(to other: RoutePlan) -> Bool { storage === other.storage }
}

extension Duration {
  /// The stagger of a leg without history: the connection attempt delay of RFC 8305, section 8.
  public static let defaultStagger = Duration.milliseconds(250)
}
