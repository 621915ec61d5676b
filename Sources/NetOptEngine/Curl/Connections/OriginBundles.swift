import NetOptCore
import Synchronization

/// The connections of libcurl's pool that a transfer may use, and what it offers on a new one.
struct ConnectionClass: Hashable {
  /// The number of the bundle, set as CURLOPT_ADDRESS_SCOPE(3); 0 is the bundle of everything without a number.
  let bundle: UInt32
  /// Whether HTTP/2 is offered in the TLS handshake.
  let offersHTTP2: Bool
}

/// The bundles of libcurl's pool for one origin. Confined to the loop.
///
/// libcurl keeps connections in bundles, one for each address. Before 8.5 it marks a bundle, not a connection, as
/// multiplexing, and then hands a busy HTTP/1.1 connection of that bundle to a second transfer: answers go to the wrong
/// request. A bundle's key contains CURLOPT_ADDRESS_SCOPE, so a number of its own for each origin, and for each offer of
/// HTTP/2, keeps apart what must not share a bundle (docs/adr/0022). A transfer that offers HTTP/1.1 alone never gets a busy
/// connection.
///
/// An endpoint that chose HTTP/1.1 is asked with HTTP/1.1 alone for some time. Its connections stay usable: their bundle
/// becomes the one for HTTP/1.1, and later offers of HTTP/2 get a new bundle.
///
/// An endpoint that went silent gets new bundles, so that nobody is given its old connections. Where a connection was lost while it was idle, others
/// are not used for some time once they have been idle for half as long.
final class OriginBundles {
  /// How long an endpoint that chose HTTP/1.1 is offered nothing else.
  static let memory = Duration.seconds(600)
  /// Beyond so many endpoints that chose HTTP/1.1 all are forgotten.
  private static let mostEndpoints = 64
  private static let lastNumber = Atomic<UInt32>(0)

  /// What is known of an endpoint that chose HTTP/1.1.
  private struct Choice {
    let endpoint: IPEndpoint?
    let http1: UInt32
    let http2: UInt32
    let until: MonotonicInstant
  }

  private let isSecure: Bool
  private let http1 = OriginBundles.nextNumber()
  private let http2 = OriginBundles.nextNumber()
  /// The bundle of connections to a proxy for plain HTTP. Origins do not share it: bytes that one server sends unasked must not answer another
  /// origin's request.
  private let proxied = OriginBundles.newNumber()
  // Unchecked exclusivity: see CurlMulti.
  @exclusivity(unchecked) private var choices: [Choice] = []

  /// The least time after which an idle connection is taken for lost: what is lost sooner is lost for another reason.
  static let shortestIdle = Duration.milliseconds(200)
  /// How long connections to an endpoint may be idle where that is known, until when it counts.
  @exclusivity(unchecked) private var idleLimits: [IPEndpoint: (limit: Duration, until: MonotonicInstant)] =
    [:]

  init(of origin: Origin) { isSecure = origin.scheme == .https }

  /// A number that no other bundle has. From libcurl 8.5 on none is needed, and all get 0.
  private static func nextNumber() -> UInt32 {
    CurlLibrary.handsOutBusyConnections ? newNumber() : 0
  }

  private static func newNumber() -> UInt32 {
    let number = lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
    return number == 0 ? newNumber() : number
  }

  /// The class of a request's connections.
  ///
  /// - Parameters:
  ///   - version: what the request asks for.
  ///   - endpoint: where the connection leads; `nil` for a proxy.
  ///   - isAlone: whether it is to have a bundle of its own: libcurl counts the connections to a host by bundles, and a probe has to connect
  ///     also where requests use all that there may be.
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

  /// An endpoint went silent on a connection of a class: it is not used any more, nor are the others of the time before.
  func leave(_ connectionClass: ConnectionClass, to endpoint: IPEndpoint?, at now: MonotonicInstant) {
    let known = choices.firstIndex { $0.endpoint == endpoint }
    let current = known.map { [choices[$0].http1, choices[$0].http2] } ?? [http1, http2, proxied]
    guard current.contains(connectionClass.bundle) else { return }
    let until = known.map { choices.remove(at: $0).until } ?? now
    if choices.count == Self.mostEndpoints { choices.removeAll() }
    choices.append(
      Choice(endpoint: endpoint, http1: Self.newNumber(), http2: Self.newNumber(), until: until))
  }

  /// A connection to an endpoint was lost while it was idle, as load balancers and firewalls forget those that carry nothing. How long they
  /// wait is known only to have been less.
  func forgets(_ endpoint: IPEndpoint?, idleFor idle: Duration, at now: MonotonicInstant) {
    guard let endpoint, idle >= Self.shortestIdle else { return }
    if idleLimits.count >= Self.mostEndpoints, idleLimits[endpoint] == nil { idleLimits = [:] }
    let limit = max(idle / 2, Self.shortestIdle)
    let known = idleLimit(of: endpoint, at: now) ?? limit
    idleLimits[endpoint] = (min(limit, known), now + Self.memory)
  }

  /// How long a connection to an endpoint may have been idle to be used over HTTP/1.1, if there is a limit.
  func idleLimit(of endpoint: IPEndpoint?, at now: MonotonicInstant) -> Duration? {
    guard !idleLimits.isEmpty, let endpoint, let known = idleLimits[endpoint], now < known.until else {
      return nil
    }
    return known.limit
  }

  /// An endpoint chose a version of HTTP on a new connection that offered both.
  func endpoint(
    _ endpoint: IPEndpoint?, choseHTTP2: Bool, in connectionClass: ConnectionClass, at now: MonotonicInstant
  ) {
    let known = choices.firstIndex { $0.endpoint == endpoint }
    if choseHTTP2 {
      // Also in a bundle that was left meanwhile: the next offer is worth its while.
      if let known {
        let choice = choices[known]
        choices[known] = Choice(endpoint: endpoint, http1: choice.http1, http2: choice.http2, until: now)
      }
      return
    }
    let current = known.map { choices[$0].http2 } ?? http2
    let until = now + Self.memory
    guard connectionClass.bundle == current else {
      // One of several handshakes that were under way at once: the bundle has been turned already.
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
