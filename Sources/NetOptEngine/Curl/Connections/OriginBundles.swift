import NetOptCore
import Synchronization

/// The connections of libcurl's pool that a transfer may use, and the protocols that a new connection offers.
struct ConnectionClass: Hashable {
  /// The number of the bundle, set as CURLOPT_ADDRESS_SCOPE(3). 0 is the bundle of all connections without a
  /// number.
  let bundle: UInt32
  /// Whether the TLS handshake offers HTTP/2.
  let offersHTTP2: Bool
}

/// The bundles of libcurl's pool for one origin. Confined to the loop's thread.
///
/// libcurl keeps connections in bundles, one for each address. libcurl before 8.5 marks a bundle, not a
/// connection, as multiplexing. It then gives a busy HTTP/1.1 connection of that bundle to a second transfer,
/// and responses go to the wrong request. The key of a bundle contains CURLOPT_ADDRESS_SCOPE. A separate
/// number for each origin, and for each offer of HTTP/2, therefore keeps apart connections that must not
/// share a bundle (docs/adr/0022). A transfer that offers only HTTP/1.1 never gets a busy connection.
///
/// When an endpoint chooses HTTP/1.1, later requests to it offer only HTTP/1.1 for some time (`memory`).
/// Connections to the endpoint stay usable: their bundle becomes the bundle for HTTP/1.1, and later offers of
/// HTTP/2 get a new bundle.
///
/// When an endpoint falls silent, it gets new bundles, so that no request uses its old connections. When an
/// idle connection was lost, other connections to the endpoint are not reused once they have been idle for
/// half as long. This limit holds for some time (`memory`).
final class OriginBundles {
  /// How long requests to an endpoint that chose HTTP/1.1 offer nothing else, and how long an idle limit
  /// holds.
  static let memory = Duration.seconds(600)
  /// The most endpoints that are remembered. When there are more, all are forgotten.
  private static let mostEndpoints = 64
  private static let lastNumber = Atomic<UInt32>(0)

  /// The bundles of an endpoint that chose HTTP/1.1 or fell silent.
  private struct Choice {
    let endpoint: IPEndpoint?
    let http1: UInt32
    let http2: UInt32
    let until: MonotonicInstant
  }

  private let isSecure: Bool
  private let http1 = OriginBundles.nextNumber()
  private let http2 = OriginBundles.nextNumber()
  /// The bundle of connections to a proxy for plain HTTP. Origins do not share this bundle: bytes that one
  /// server sends unrequested must not answer a request to another origin.
  private let proxied = OriginBundles.newNumber()
  // Unchecked exclusivity: see CurlMulti.
  @exclusivity(unchecked) private var choices: [Choice] = []

  /// The shortest idle time of a lost connection for which the idleness counts as the cause of the loss. If
  /// the connection was idle for less time, the loss counts as having another cause.
  static let shortestIdle = Duration.milliseconds(200)
  /// How long connections to an endpoint may be idle, where a limit is known, and until when the limit holds.
  @exclusivity(unchecked) private var idleLimits: [IPEndpoint: (limit: Duration, until: MonotonicInstant)] =
    [:]

  init(of origin: Origin) { isSecure = origin.scheme == .https }

  /// Returns a number that no other bundle has. libcurl 8.5 and later needs no numbers, and all bundles get
  /// 0.
  private static func nextNumber() -> UInt32 {
    CurlLibrary.handsOutBusyConnections ? newNumber() : 0
  }

  private static func newNumber() -> UInt32 {
    let number = lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
    return number == 0 ? newNumber() : number
  }

  /// Returns the class of a request's connections.
  ///
  /// - Parameters:
  ///   - version: the HTTP version that the request asks for.
  ///   - endpoint: the endpoint of the connection; `nil` for a proxy.
  ///   - isAlone: whether the connection gets a bundle of its own. libcurl limits the connections to a host
  ///     per bundle, and a probe must connect even if requests use all connections that are allowed.
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

  /// Gives an endpoint new bundles after it fell silent on a connection of a class. Neither that connection
  /// nor any other from before is used again.
  func renewBundles(of connectionClass: ConnectionClass, to endpoint: IPEndpoint?, at now: MonotonicInstant) {
    let known = choices.firstIndex { $0.endpoint == endpoint }
    let current = known.map { [choices[$0].http1, choices[$0].http2] } ?? [http1, http2, proxied]
    guard current.contains(connectionClass.bundle) else { return }
    let until = known.map { choices.remove(at: $0).until } ?? now
    if choices.count == Self.mostEndpoints { choices.removeAll() }
    choices.append(
      Choice(endpoint: endpoint, http1: Self.newNumber(), http2: Self.newNumber(), until: until))
  }

  /// Records that an idle connection to an endpoint was lost. Load balancers and firewalls drop connections
  /// that carry nothing. The idle time after which they do so is unknown, but less than `idle`.
  func noteIdleLoss(of endpoint: IPEndpoint?, idleFor idle: Duration, at now: MonotonicInstant) {
    guard let endpoint, idle >= Self.shortestIdle else { return }
    if idleLimits.count >= Self.mostEndpoints, idleLimits[endpoint] == nil { idleLimits = [:] }
    let limit = max(idle / 2, Self.shortestIdle)
    let known = idleLimit(of: endpoint, at: now) ?? limit
    idleLimits[endpoint] = (min(limit, known), now + Self.memory)
  }

  /// Returns the longest idle time after which HTTP/1.1 reuses a connection to an endpoint; `nil` without a
  /// limit.
  func idleLimit(of endpoint: IPEndpoint?, at now: MonotonicInstant) -> Duration? {
    guard !idleLimits.isEmpty, let endpoint, let known = idleLimits[endpoint], now < known.until else {
      return nil
    }
    return known.limit
  }

  /// Records which HTTP version an endpoint chose on a new connection that offered both.
  func endpoint(
    _ endpoint: IPEndpoint?, choseHTTP2: Bool, in connectionClass: ConnectionClass, at now: MonotonicInstant
  ) {
    let known = choices.firstIndex { $0.endpoint == endpoint }
    if choseHTTP2 {
      // This also holds for a bundle that has been replaced since: the next request should offer HTTP/2
      // again.
      if let known {
        let choice = choices[known]
        choices[known] = Choice(endpoint: endpoint, http1: choice.http1, http2: choice.http2, until: now)
      }
      return
    }
    let current = known.map { choices[$0].http2 } ?? http2
    let until = now + Self.memory
    guard connectionClass.bundle == current else {
      // This is one of several handshakes that ran at once. An earlier one has already replaced the bundle.
      if let known {
        let choice = choices[known]
        choices[known] = Choice(endpoint: endpoint, http1: choice.http1, http2: choice.http2, until: until)
      }
      return
    }
    if let known { choices.remove(at: known) }
    if choices.count == Self.mostEndpoints { choices.removeAll() }
    choices.append(Choice(endpoint: endpoint, http1: current, http2: Self.nextNumber(), until: until))
  }
}
