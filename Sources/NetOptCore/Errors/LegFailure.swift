/// Why a leg of the race failed, in the terms in which blame is given.
public struct LegFailure: Hashable, Sendable, CustomStringConvertible {
  /// The kinds of failure.
  public enum Kind: Hashable, Sendable {
    /// The endpoint answered with a reset to the attempt to connect.
    case refused
    /// The endpoint did not answer the attempt to connect, or not in time.
    case connectTimeout
    /// TCP was connected; the TLS handshake did not come to an end in time.
    case tlsTimeout
    /// The connection was reset or closed.
    case reset
    /// The TLS handshake failed.
    case tls
    /// The certificate is for other names.
    case certificateName(presented: [String])
    /// The certificate is not signed by a trusted authority.
    case certificateUntrusted
    /// The certificate has expired or is not yet valid.
    case certificateExpired
    /// The authorities to trust could not be read, so that no certificate can be verified.
    case authorities
    /// This machine has no way to the address: no route, no such address family.
    case unreachable
    /// The endpoint took requests and went silent, while others answer; or its connection is dead, while the endpoint works.
    case silent
    /// The endpoint took no request on a connection that works: it refused the stream (REFUSED_STREAM; RFC 9113, section 8.7), or allowed
    /// none.
    case busy
    /// The health check was not answered as the list wants it.
    case unhealthy
    /// The look-up failed: no name server gave an answer.
    case resolve
    /// DNS answered that the name has no address, or none that leads anywhere new.
    case nameNotFound
    /// The proxy failed, or could not connect to the server. It may do so later.
    case proxy
    /// No connection through the proxy comes about until somebody changes something: it wants credentials, does not allow the server, or
    /// its URL is none.
    case proxyRefused
    /// Anything else.
    case other
  }

  /// The kind of failure.
  public let kind: Kind
  /// What happened, for people.
  public let message: String

  /// Makes a failure.
  public init(_ kind: Kind, _ message: String) {
    self.kind = kind
    self.message = message
  }

  /// What happened.
  public var description: String { message }
}

extension LegFailure.Kind {
  /// How much it tells about why a call failed; the more, the higher.
  ///
  /// First comes what fails again until somebody changes a setting or a server: this machine, the proxy, a certificate. Then what a
  /// server did, the later in the connection the more. Then what gave no answer. What DNS says comes last: it is asked when all else has failed.
  package var weight: Int {
    switch self {
    case .authorities: 17
    case .proxyRefused: 16
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

  /// What happened, as a predicate: "refused the connection".
  package var predicate: String {
    switch self {
    case .authorities: "cannot be verified"
    case .proxyRefused: "refused the connection as a proxy"
    case .certificateName: "has a certificate for another name"
    case .certificateUntrusted: "has a certificate that is not trusted"
    case .certificateExpired: "has a certificate out of its time"
    case .proxy: "failed as a proxy"
    case .tls: "failed in the TLS handshake"
    case .unhealthy: "failed its health check"
    case .silent: "went silent"
    case .busy: "took no request"
    case .reset: "closed the connection"
    case .other: "failed"
    case .tlsTimeout: "stayed silent in the TLS handshake"
    case .refused: "refused the connection"
    case .connectTimeout: "did not answer"
    case .unreachable: "cannot be reached from here"
    case .resolve: "gave no answer"
    case .nameNotFound: "knows no other address for the name"
    }
  }

  /// The error of a call that fails with it.
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
    case .authorities: (.noAuthorities, .tls, false)
    case .resolve: (.resolverFailed, .resolve, true)
    case .nameNotFound: (.nameNotFound, .resolve, false)
    case .proxy: (.proxyFailed, .connect, true)
    case .proxyRefused: (.proxyFailed, .connect, false)
    }
  }
}

extension NetOptError {
  /// The error of a call that fails with a leg.
  package init(_ failure: LegFailure, at endpoint: IPEndpoint?) {
    let (code, phase, isRetryable) = failure.kind.error
    self.init(code, phase: phase, failure.message, endpoint: endpoint, isRetryable: isRetryable)
  }
}
