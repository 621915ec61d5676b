import NetOptCore
import Synchronization

/// Which connections of libcurl's pool a transfer may use, and which HTTP versions its new connection offers.
struct ConnectionClass: Hashable {
  /// The number of the bundle, set as CURLOPT_ADDRESS_SCOPE(3). Never 0.
  let bundle: UInt32
  /// Whether the TLS handshake offers HTTP/2.
  let offersHTTP2: Bool
}

/// The bundles of libcurl's pool for one origin. Confined to the loop's thread.
///
/// libcurl keeps connections in bundles, one for each address. libcurl before 8.5 marks a bundle, not a
/// connection, as multiplexing. It then gives a busy HTTP/1.1 connection of that bundle to a second transfer,
/// and responses go to the wrong request. libcurl 8.14 gives a TLS connection to a request for http:// at the
/// same port. The key of a bundle contains CURLOPT_ADDRESS_SCOPE. A separate number for each origin, and for
/// each offer of HTTP/2, therefore keeps apart connections that must not share a bundle (docs/adr/0022). A
/// transfer that offers only HTTP/1.1 never gets a busy connection.
///
/// When an endpoint chooses HTTP/1.1, later requests to it offer only HTTP/1.1 for the time `memory`.
/// Connections to the endpoint stay usable: their bundle becomes the bundle for HTTP/1.1, and later offers of
/// HTTP/2 get a new bundle.
///
/// When an endpoint falls silent, it gets new bundles, so that no request uses its old connections. When a
/// connection was lost because it had been idle for some time, connections to the endpoint are not reused
/// once they have been idle for half that time. This limit holds for `memory`.
final class OriginBundles {
  /// How long requests to an endpoint that chose HTTP/1.1 offer only HTTP/1.1, and how long an idle limit
  /// holds.
  static let memory = Duration.seconds(600)
  /// The maximum number of endpoints in `choices`, and in `idleLimits`. Before one more is added, all are
  /// removed.
  private static let mostEndpoints = 64
  /// The last number that a bundle of any client in the process got.
  private static let lastNumber = Atomic<UInt32>(0)

  /// The bundles of an endpoint that chose HTTP/1.1 or fell silent. They replace the bundles of the origin.
  private struct Choice {
    /// `nil` for a proxy.
    let endpoint: IPEndpoint?
    /// The number of the bundle for transfers that offer only HTTP/1.1.
    let http1: UInt32
    /// The number of the bundle for transfers that offer HTTP/2.
    let http2: UInt32
    /// Until when requests offer only HTTP/1.1, because the endpoint chose HTTP/1.1. A past moment if the
    /// endpoint did not, or has since chosen HTTP/2.
    let until: MonotonicInstant
  }

  /// Whether the origin's scheme is https. Only TLS connections offer HTTP/2.
  private let isSecure: Bool
  /// The bundles of the endpoints that have no `Choice`: for transfers that offer only HTTP/1.1, and for
  /// those that offer HTTP/2.
  private let http1 = OriginBundles.newNumber()
  private let http2 = OriginBundles.newNumber()
  /// The bundle of connections to a proxy for plain HTTP. Each origin has its own: a connection to the proxy
  /// may hold bytes that one server sent without a request, and these must not answer a request to another
  /// origin.
  private let proxied = OriginBundles.newNumber()
  // Unchecked exclusivity: see CurlMulti.
  @exclusivity(unchecked) private var choices: [Choice] = []

  /// If a connection is lost after a shorter idle time than this, the idle time does not count as the cause.
  static let shortestIdle = Duration.milliseconds(200)
  /// For endpoints that lost idle connections: the idle time from which on a connection is not reused, and
  /// until when this limit holds.
  @exclusivity(unchecked) private var idleLimits: [IPEndpoint: (limit: Duration, until: MonotonicInstant)] =
    [:]

  /// The TLS settings of the connections in the bundles.
  let tls: HostTLS

  init(of origin: Origin, _ tls: HostTLS) {
    isSecure = origin.scheme == .https
    self.tls = tls
  }

  /// Returns a number that no other bundle in the process has. Never 0.
  private static func newNumber() -> UInt32 {
    let number = lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
    return number == 0 ? newNumber() : number
  }

  /// Returns the class of the connections that a transfer may use or open.
  ///
  /// - Parameters:
  ///   - version: the HTTP version that the request asks for.
  ///   - endpoint: the endpoint of the connection; `nil` for a proxy.
  ///   - isAlone: whether the connection gets a bundle that no other connection has. libcurl applies its
  ///     limit of connections to a host to each bundle, and a probe must connect even if requests use all
  ///     connections that the limit allows.
  func connectionClass(
    for version: RequestOptions.Version, to endpoint: IPEndpoint?, isAlone: Bool = false,
    at now: MonotonicInstant
  ) -> ConnectionClass {
    guard !isAlone else {
      let usual = connectionClass(for: version, to: endpoint, at: now)
      return ConnectionClass(bundle: Self.newNumber(), offersHTTP2: usual.offersHTTP2)
    }
    let choice = choices.isEmpty ? nil : choices.last { $0.endpoint == endpoint }
    guard isSecure else {
      return ConnectionClass(bundle: choice?.http1 ?? (endpoint == nil ? proxied : http1), offersHTTP2: false)
    }
    if version == .http1 || version == .automatic && choice.map({ now < $0.until }) == true {
      return ConnectionClass(bundle: choice?.http1 ?? http1, offersHTTP2: false)
    }
    return ConnectionClass(bundle: choice?.http2 ?? http2, offersHTTP2: true)
  }

  /// Gives an endpoint new bundles after it fell silent on a connection. No later transfer uses that
  /// connection or any other connection opened before.
  ///
  /// - Parameter connectionClass: the class of the silent connection. If its bundle has been replaced since,
  ///   nothing changes.
  func renewBundles(of connectionClass: ConnectionClass, to endpoint: IPEndpoint?, at now: MonotonicInstant) {
    let known = choices.firstIndex { $0.endpoint == endpoint }
    let current = known.map { [choices[$0].http1, choices[$0].http2] } ?? [http1, http2, proxied]
    guard current.contains(connectionClass.bundle) else { return }
    let until = known.map { choices.remove(at: $0).until } ?? now
    if choices.count == Self.mostEndpoints { choices.removeAll() }
    choices.append(
      Choice(endpoint: endpoint, http1: Self.newNumber(), http2: Self.newNumber(), until: until))
  }

  /// Records that a connection to an endpoint was lost while it was idle. Load balancers and firewalls drop
  /// idle connections. The idle time after which they do so is unknown, but at most `idle`. Does nothing for
  /// a proxy, or if `idle` is shorter than `shortestIdle`.
  ///
  /// - Parameter idle: how long the connection had been idle when a request was sent on it.
  func noteIdleLoss(of endpoint: IPEndpoint?, idleFor idle: Duration, at now: MonotonicInstant) {
    guard let endpoint, idle >= Self.shortestIdle else { return }
    if idleLimits.count >= Self.mostEndpoints, idleLimits[endpoint] == nil { idleLimits = [:] }
    let limit = max(idle / 2, Self.shortestIdle)
    let known = idleLimit(of: endpoint, at: now) ?? limit
    idleLimits[endpoint] = (min(limit, known), now + Self.memory)
  }

  /// Returns the idle time from which on an HTTP/1.1 connection to an endpoint is not reused; `nil` if no
  /// limit is known.
  func idleLimit(of endpoint: IPEndpoint?, at now: MonotonicInstant) -> Duration? {
    guard !idleLimits.isEmpty, let endpoint, let known = idleLimits[endpoint], now < known.until else {
      return nil
    }
    return known.limit
  }

  /// Records which HTTP version an endpoint chose on a new connection that offered HTTP/2 and HTTP/1.1.
  ///
  /// - Parameter connectionClass: the class of the new connection.
  func recordALPN(
    of endpoint: IPEndpoint?, choseHTTP2: Bool, in connectionClass: ConnectionClass, at now: MonotonicInstant
  ) {
    let known = choices.firstIndex { $0.endpoint == endpoint }
    if choseHTTP2 {
      // Even if the connection's bundle has been replaced since, the next request should offer HTTP/2 again.
      if let known {
        let choice = choices[known]
        choices[known] = Choice(endpoint: endpoint, http1: choice.http1, http2: choice.http2, until: now)
      }
      return
    }
    let current = known.map { choices[$0].http2 } ?? http2
    let until = now + Self.memory
    guard connectionClass.bundle == current else {
      // Several handshakes ran at once, and an earlier one has already replaced the bundle.
      if let known {
        let choice = choices[known]
        choices[known] = Choice(endpoint: endpoint, http1: choice.http1, http2: choice.http2, until: until)
      }
      return
    }
    if let known { choices.remove(at: known) }
    if choices.count == Self.mostEndpoints { choices.removeAll() }
    choices.append(Choice(endpoint: endpoint, http1: current, http2: Self.newNumber(), until: until))
  }
}
