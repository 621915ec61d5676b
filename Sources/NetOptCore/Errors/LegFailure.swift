/// The reason why a leg or a probe failed. A leg is one connection attempt of a race, which tries the
/// addresses of a plan until one connection is ready. The planner decides by the kind of failure whether the
/// failure counts against the endpoint.
public struct LegFailure: Hashable, Sendable, CustomStringConvertible {
  /// The kinds of failure.
  public enum Kind: Hashable, Sendable {
    /// The endpoint answered the TCP connection attempt with a reset.
    case refused
    /// The endpoint did not answer the TCP connection attempt in time, or the ICMP echo request of a probe.
    case connectTimeout
    /// TCP was connected, but the TLS handshake did not complete in time.
    case tlsTimeout
    /// The connection was reset or closed.
    case reset
    /// The TLS handshake failed.
    case tls
    /// The certificate is valid for other names only.
    case certificateName(presented: [String])
    /// The certificate is not signed by a trusted authority.
    case certificateUntrusted
    /// The certificate has expired or is not yet valid.
    case certificateExpired
    /// The certificate's key is none of the pinned keys.
    case certificatePin
    /// The trusted certificate authorities could not be read, so no certificate can be verified.
    case authorities
    /// This machine cannot reach the address: it has no route to it, or does not support its address family.
    case unreachable
    /// A request got no response, although an endpoint worked. Either the endpoint accepted requests and
    /// answered none, while other endpoints answered. Or the connection of the request is dead: the endpoint
    /// acknowledged nothing on it, while this endpoint (over another connection) or another one worked.
    case silent
    /// The endpoint accepted no request on a working HTTP/2 connection: it refused the stream
    /// (REFUSED_STREAM; RFC 9113, section 8.7), or allowed no streams.
    case busy
    /// The response to a probe's health check is not the response that the list describes.
    case unhealthy
    /// The DNS look-up failed: no name server answered.
    case resolve
    /// DNS has no address for the name, or only addresses that the race has already tried.
    case nameNotFound
    /// The proxy failed or could not connect to the server. A later attempt may succeed.
    case proxy
    /// The proxy will refuse every connection until a setting changes: it requires credentials, it does not
    /// allow connections to the server, or the URL of the proxy is invalid.
    case proxyRefused
    /// Any other failure.
    case other
  }

  /// The kind of failure.
  public let kind: Kind
  /// What happened, in human-readable form.
  public let message: String

  /// Creates a failure.
  public init(_ kind: Kind, _ message: String) {
    self.kind = kind
    self.message = message
  }

  /// The message.
  public var description: String { message }
}

extension LegFailure.Kind {
  /// How well the failure explains why a call failed, from 0 to 18. If the legs of a call failed in different
  /// ways, the error of the call names the failure with the highest weight.
  ///
  /// The highest weights belong to failures that recur until somebody changes something: unreadable
  /// authorities, a proxy that refuses every connection, a certificate. Next come other failures of the
  /// proxy, then failures after TCP was connected, then failures to connect. DNS failures have the lowest
  /// weights, because a race often asks DNS only after the endpoints of the list have failed.
  package var weight: Int {
    switch self {
    case .authorities: 18
    case .proxyRefused: 17
    case .certificatePin: 16
    case .certificateName: 15
    case .certificateUntrusted: 14
    case .certificateExpired: 13
    case .proxy: 12
    case .tls: 11
    case .unhealthy: 10
    case .silent: 9
    case .busy: 8
    case .reset: 7
    case .other: 6
    case .tlsTimeout: 5
    case .refused: 4
    case .connectTimeout: 3
    case .unreachable: 2
    case .resolve: 1
    case .nameNotFound: 0
    }
  }

  /// What happened, as the end of a sentence whose subject is the endpoint, the proxy or DNS: "refused the
  /// connection".
  package var predicate: String {
    switch self {
    case .authorities: "cannot be verified"
    case .proxyRefused: "refused to connect to the server"
    case .certificateName: "presented a certificate for another name"
    case .certificateUntrusted: "presented a certificate that is not trusted"
    case .certificateExpired: "presented a certificate that has expired or is not yet valid"
    case .certificatePin: "presented a certificate whose key is not pinned"
    case .proxy: "opened no connection to the server"
    case .tls: "failed in the TLS handshake"
    case .unhealthy: "failed its health check"
    case .silent: "went silent"
    case .busy: "accepted no further request"
    case .reset: "closed the connection"
    case .other: "failed"
    case .tlsTimeout: "did not answer in the TLS handshake"
    case .refused: "refused the connection"
    case .connectTimeout: "did not answer"
    case .unreachable: "cannot be reached from this machine"
    case .resolve: "gave no answer"
    case .nameNotFound: "has no other address for the name"
    }
  }

  /// The properties of the `NetOptError` of a call that fails for this reason.
  package var error: (code: NetOptError.Code, phase: NetOptError.Phase, isRetryable: Bool) {
    switch self {
    case .refused, .reset, .unreachable, .unhealthy, .other: (.connectFailed, .connect, true)
    case .silent: (.receiveFailed, .receive, true)
    case .busy: (.sendFailed, .send, true)
    case .connectTimeout: (.timeout, .connect, true)
    case .tlsTimeout: (.timeout, .tls, true)
    case .tls: (.tlsFailed, .tls, true)
    case .certificateName: (.certificateName, .tls, false)
    case .certificateUntrusted: (.certificateUntrusted, .tls, false)
    case .certificateExpired: (.certificateExpired, .tls, false)
    case .certificatePin: (.certificatePin, .tls, false)
    case .authorities: (.noAuthorities, .tls, false)
    case .resolve: (.resolverFailed, .resolve, true)
    case .nameNotFound: (.nameNotFound, .resolve, false)
    case .proxy: (.proxyFailed, .connect, true)
    case .proxyRefused: (.proxyFailed, .connect, false)
    }
  }
}

extension NetOptError {
  /// Creates the error of a call from the failure of a leg.
  ///
  /// - Parameter endpoint: the endpoint of the leg; `nil` for a DNS look-up and a proxy.
  package init(_ failure: LegFailure, at endpoint: IPEndpoint?) {
    let (code, phase, isRetryable) = failure.kind.error
    self.init(code, phase: phase, failure.message, endpoint: endpoint, isRetryable: isRetryable)
  }
}
