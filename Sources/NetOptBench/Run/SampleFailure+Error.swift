package import NetOptCore

extension SampleFailure {
  /// The code of a failure when this machine has no route to the address. Such a failure says nothing about
  /// the address.
  static let unreachable = "unreachable"

  /// Makes the failure for the error of a call. When no leg sent the request, the error says little. The
  /// failure of the leg that explains the error best then replaces it.
  package init(_ error: NetOptError) {
    if let route = error.route, route.winner == nil,
      let leg = RaceFailures(route.plan, route.legs).first, let failure = SampleFailure(leg)
    {
      self = failure
      return
    }
    let code = error.code.description
    switch error.code {
    case .timeout:
      self.init(.timeout, code: code, reason: "no answer in time")
    case .nameNotFound, .resolverFailed:
      self.init(.dns, code: code, reason: "DNS: \(error.message)")
    case .certificateName, .certificateUntrusted, .certificateExpired, .certificatePin, .noAuthorities,
      .tlsFailed:
      self.init(.tls, code: code, reason: "TLS: \(error.message)")
    case .connectFailed, .proxyFailed, .sendFailed, .receiveFailed, .shutDown:
      self.init(.connect, code: code, reason: error.message)
    default:
      self.init(.httpError, code: code, reason: error.message)
    }
  }

  /// Makes the failure for a failed leg; `nil` for the kinds of leg failures that explain less than the error
  /// of the call.
  private init?(_ leg: LegFailure) {
    switch leg.kind {
    case .refused: self.init(.connect, code: "refused", reason: "connect: refused")
    case .connectTimeout: self.init(.timeout, code: "silent", reason: "connect: no answer in time")
    case .tlsTimeout: self.init(.timeout, code: "silent", reason: "TLS: no answer in time")
    case .silent: self.init(.timeout, code: "silent", reason: "no answer, although other endpoints answer")
    case .reset: self.init(.connect, code: "reset", reason: "connect: the connection was closed")
    case .unreachable: self.init(.connect, code: Self.unreachable, reason: "connect: no route from here")
    case .tls: self.init(.tls, code: "tls-failed", reason: "TLS: \(leg.message)")
    case .certificateName(let presented):
      let names = presented.isEmpty ? "another name" : presented.joined(separator: ", ")
      self.init(.tls, code: "certificate-name", reason: "TLS: certificate is for \(names)")
    case .certificateUntrusted:
      self.init(.tls, code: "certificate-untrusted", reason: "TLS: certificate is from an unknown authority")
    case .certificateExpired:
      self.init(.tls, code: "certificate-expired", reason: "TLS: certificate expired or not yet valid")
    case .certificatePin:
      self.init(.tls, code: "certificate-pin", reason: "TLS: the key of the certificate is not pinned")
    case .resolve, .nameNotFound: self.init(.dns, code: "name-not-found", reason: "DNS: \(leg.message)")
    case .busy, .unhealthy, .proxy, .proxyRefused, .authorities, .other: return nil
    }
  }
}
