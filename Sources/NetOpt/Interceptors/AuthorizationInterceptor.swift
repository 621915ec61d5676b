import NetOptCore

/// Adds credentials to the requests to some hosts (`ClientConfiguration.Authorization`). Its mirror has no
/// children, so that a dump of the client does not show the credentials.
struct AuthorizationInterceptor: Interceptor, CustomReflectable {
  var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }

  /// Credentials, and the hosts whose requests get them.
  private struct Entry: Sendable {
    let hosts: Set<String>
    let allowsUnprotected: Bool
    let credentials: Credentials
  }

  private enum Credentials: Sendable {
    case value(String)
    case token(BearerToken)
  }

  private let entries: [Entry]

  /// - Parameter settings: the settings, with their hosts in the form of origins.
  init(_ settings: [ClientConfiguration.Authorization], _ waits: BoundedWaits) {
    entries = settings.map { setting in
      let credentials: Credentials =
        if case .token(let make) = setting.source {
          .token(BearerToken(waits, make))
        } else {
          .value(setting.value ?? "")
        }
      return Entry(
        hosts: setting.hosts, allowsUnprotected: setting.allowsUnprotected, credentials: credentials)
    }
  }

  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
  {
    let origin = request.url.origin
    guard
      let entry = entries.first(where: { entry in
        entry.hosts.contains(origin.host)
          && (origin.scheme == .https && request.options.verification == .full || entry.allowsUnprotected)
      }), !request.headers.contains(name: "Authorization")
    else { return try await next.proceed(request) }
    switch entry.credentials {
    case .value(let value): return try await next.proceed(Self.request(request, with: value))
    case .token(let token): return try await proceed(request, with: token, next)
    }
  }

  /// Sends a request with a token, and once more with another token if the server rejects the first one. The
  /// second request is safe: the server has not carried out a request that it answers with 401. A request
  /// whose body is not repeatable is sent only once. If the server rejects its token, the next call fetches
  /// another one.
  private func proceed(
    _ request: NetOptRequest, with source: BearerToken, _ next: InterceptorChain
  ) async throws(NetOptError) -> NetOptResponse {
    let token = try await source.token(replacing: nil, until: next.deadline)
    let response = try await next.proceed(Self.request(request, with: "Bearer \(token)"))
    guard response.status == 401 else { return response }
    guard request.body.isRepeatable else {
      source.drop(token)
      return response
    }
    return try await again(request, after: consume response, with: source, rejected: token, next)
  }

  private func again(
    _ request: NetOptRequest, after response: consuming NetOptResponse, with source: BearerToken,
    rejected: String, _ next: InterceptorChain
  ) async throws(NetOptError) -> NetOptResponse {
    let other = try await source.token(replacing: rejected, until: next.deadline)
    guard other != rejected else { return response }
    // Release the response, which ends the transfer of a body that is still arriving. Otherwise it could hold
    // the connection that the next request needs.
    _ = consume response
    return try await next.proceed(Self.request(request, with: "Bearer \(other)"))
  }

  private static func request(_ request: NetOptRequest, with credentials: String) -> NetOptRequest {
    var request = request
    request.headers["Authorization"] = credentials
    return request
  }
}
