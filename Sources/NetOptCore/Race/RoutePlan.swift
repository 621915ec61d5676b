/// Where an address came from.
public enum AddressSource: String, Hashable, Sendable, BitwiseCopyable {
  /// The IP list.
  case list
  /// The name system, or the URL itself when its host is an address.
  case dns
}

/// How a policy weighed its endpoints, kept as it found them, to be put into words when somebody asks.
package protocol CandidateSource: Sendable {
  /// Whether there are none.
  var isEmpty: Bool { get }
  /// Puts them into words.
  func candidates() -> [RouteReport.Candidate]
}

/// The order in which endpoints are tried for one request, and why it is this one. Made by a policy, performed by a
/// `Transport`.
@usableFromInline
package struct RoutePlan: Sendable {
  /// How the legs were chosen.
  package enum Policy: String, Hashable, Sendable {
    /// As routing's policy of this name chooses.
    case fastest
    /// As routing's policy of this name chooses.
    case balanced
    /// As routing's policy of this name chooses, or the caller named the address.
    case pinned
    /// A probe's own choice.
    case probe
    /// A cache gave the response.
    case cache
    /// An interceptor gave the response.
    case interceptor = "none"
  }

  /// Why the list is not used.
  package enum DirectOff: String, Hashable, Sendable {
    /// A proxy is configured.
    case proxy
    /// The caller asked for it.
    case flag
    /// The list's entry is for another port.
    case port
    /// No list, or the host is not in it.
    case noList = "no-list"
    /// The list has expired.
    case expired
  }

  /// One leg: something to connect to. It holds no reference: a plan of a hundred legs is written with each change.
  @usableFromInline
  package struct Leg: Hashable, Sendable, BitwiseCopyable {
    /// What a leg leads to.
    package enum Target: Hashable, Sendable, BitwiseCopyable {
      /// An address, dialled directly.
      case address(IPAddress)
      /// What the resolver answers when the leg's turn comes.
      case dns
      /// The plan's HTTP or SOCKS proxy. It resolves the name.
      case proxy
    }

    /// What the leg leads to.
    package let target: Target
    /// Where its address comes from.
    package let source: AddressSource
    /// The stagger in nanoseconds, or its complement in a leg that is last: a flag of its own would make each leg larger by eight bytes.
    private let timing: Int64

    /// Whether it is started only when all others have failed: its connection would be ready first, and be of no use.
    package var isLast: Bool { timing < 0 }

    /// How long the leg is given to be ready before the next one starts beside it.
    package var stagger: Duration { .nanoseconds(isLast ? ~timing : timing) }

    /// The address, when the leg leads to one.
    package var address: IPAddress? { if case .address(let address) = target { address } else { nil } }

    /// Makes a leg.
    package init(
      _ target: Target, source: AddressSource, stagger: Duration = .defaultStagger, isLast: Bool = false
    ) {
      self.target = target
      self.source = source
      let nanoseconds = max(0, stagger.nanoseconds)
      timing = isLast ? ~nanoseconds : nanoseconds
    }

    /// The same leg, started when all others have failed.
    package var last: Leg { Leg(target, source: source, stagger: stagger, isLast: true) }
  }

  /// A plan is handed through many hands for each request, and copied for each report: it is one reference. What each request asks for is
  /// inlined, or a getter of another module would copy it.
  @usableFromInline
  final class Storage: Sendable {
    @usableFromInline let origin: Origin
    let proxy: String?
    @usableFromInline let isSecure: Bool
    let policy: Policy
    let directOff: DirectOff?
    let candidates: any CandidateSource
    @usableFromInline let legs: [Leg]
    let withoutList: RouteReport.Fallback?
    let startsTwo: Bool
    @usableFromInline let multiplexes: Bool
    let suspectsNetwork: Bool
    let verifies: Bool
    let avoidance: Avoidance?

    init(
      _ origin: Origin, _ proxy: String?,
      _ policy: Policy, _ directOff: DirectOff?, _ candidates: any CandidateSource,
      _ legs: [Leg], _ withoutList: RouteReport.Fallback?, _ startsTwo: Bool, _ multiplexes: Bool,
      _ suspectsNetwork: Bool, _ verifies: Bool, _ avoidance: Avoidance?
    ) {
      self.origin = origin
      self.proxy = proxy
      isSecure = origin.scheme == .https
      self.policy = policy
      self.directOff = directOff
      self.candidates = candidates
      self.legs = legs
      self.withoutList = withoutList
      self.startsTwo = startsTwo
      self.multiplexes = multiplexes
      self.suspectsNetwork = suspectsNetwork
      self.verifies = verifies
      self.avoidance = avoidance
    }
  }

  /// Candidates that are in words already.
  private struct Candidates: CandidateSource {
    let all: [RouteReport.Candidate]
    var isEmpty: Bool { all.isEmpty }
    func candidates() -> [RouteReport.Candidate] { all }
  }

  @usableFromInline let storage: Storage

  /// What is connected to.
  @inlinable package var origin: Origin { storage.origin }
  /// The URL of the HTTP or SOCKS proxy, where a leg leads to one.
  package var proxy: String? { storage.proxy }
  /// Whether it is connected to with TLS.
  @inlinable package var isSecure: Bool { storage.isSecure }
  /// How the legs were chosen.
  package var policy: Policy { storage.policy }
  /// Why the list is not used, or `nil` when it is.
  package var directOff: DirectOff? { storage.directOff }
  /// The list's endpoints, as they were weighed. Put into words each time: keep them when they are needed more than
  /// once.
  package var candidates: [RouteReport.Candidate] {
    avoidance?.marked(storage.candidates.candidates()) ?? storage.candidates.candidates()
  }
  /// Whether there are candidates.
  package var hasCandidates: Bool { !storage.candidates.isEmpty }
  /// The legs in their order; never empty.
  @inlinable package var legs: [Leg] { storage.legs }
  /// Why the list's endpoints are not tried although the list is used.
  package var withoutList: RouteReport.Fallback? { storage.withoutList }
  /// Whether the first two legs start together: every circuit is open, and one of them is a guess.
  package var startsTwo: Bool { storage.startsTwo }
  /// Whether a connection of this origin carries many requests, so that a leg that loses costs nothing.
  @inlinable package var multiplexes: Bool { storage.multiplexes }
  /// Whether this machine's network is taken to be down: several endpoints and DNS failed within seconds, and nothing
  /// has worked since. What fails then is held against no endpoint.
  package var suspectsNetwork: Bool { storage.suspectsNetwork }
  /// Whether connections of its legs verify the certificate, where they have TLS.
  package var verifies: Bool { storage.verifies }
  /// What an attempt that is not the call's first keeps away from; `nil` in the plan of a first one.
  package var avoidance: Avoidance? { storage.avoidance }

  /// Makes a plan.
  ///
  /// - Precondition: there is a leg, and a proxy when one leads there.
  package init(
    origin: Origin, proxy: String? = nil,
    policy: Policy, directOff: DirectOff? = nil, candidates: [RouteReport.Candidate] = [], legs: [Leg],
    withoutList: RouteReport.Fallback? = nil, startsTwo: Bool = false, multiplexes: Bool = true,
    suspectsNetwork: Bool = false, verifies: Bool = true, avoidance: Avoidance? = nil
  ) {
    self.init(
      origin: origin, proxy: proxy,
      policy: policy, directOff: directOff, weighed: Candidates(all: candidates), legs: legs,
      withoutList: withoutList, startsTwo: startsTwo, multiplexes: multiplexes,
      suspectsNetwork: suspectsNetwork, verifies: verifies, avoidance: avoidance)
  }

  /// Makes a plan whose candidates are put into words later.
  ///
  /// - Precondition: there is a leg, and a proxy when one leads there.
  package init(
    origin: Origin, proxy: String? = nil,
    policy: Policy, directOff: DirectOff? = nil, weighed candidates: any CandidateSource,
    legs: [Leg], withoutList: RouteReport.Fallback? = nil, startsTwo: Bool = false, multiplexes: Bool = true,
    suspectsNetwork: Bool = false, verifies: Bool = true, avoidance: Avoidance? = nil
  ) {
    precondition(!legs.isEmpty, "a plan has at least one leg")
    precondition(proxy != nil || legs[0].target != .proxy, "a plan that leads to a proxy says to which")
    storage = Storage(
      origin, proxy,
      policy, directOff, candidates, legs, withoutList, startsTwo, multiplexes, suspectsNetwork, verifies,
      avoidance)
  }

  /// The same plan with other legs, for an attempt that keeps away from some addresses.
  ///
  /// - Precondition: there is a leg.
  func with(_ legs: [Leg], avoiding avoidance: Avoidance) -> RoutePlan {
    RoutePlan(
      origin: origin, proxy: proxy,
      policy: policy, directOff: directOff, weighed: storage.candidates, legs: legs,
      withoutList: withoutList, startsTwo: startsTwo && legs.count > 1, multiplexes: multiplexes,
      suspectsNetwork: suspectsNetwork, verifies: verifies, avoidance: avoidance)
  }

  /// Whether this is the very plan that the other one is, not only an equal one.
  package func isIdentical(to other: RoutePlan) -> Bool { storage === other.storage }
}

extension Duration {
  /// What a leg without history is given to be ready: the connection attempt delay of RFC 8305, section 8.
  public static let defaultStagger = Duration.milliseconds(250)
}
