import FoundationEssentials
import NetOptCore

/// Adds cookies to the requests to the hosts in `ClientConfiguration.cookieHosts`. Outside the cache, which
/// keeps responses to requests with different cookies apart.
struct CookieInterceptor: Interceptor {
  let jar: CookieJar
  let hosts: Set<String>
  /// The system's clock, in seconds since 1970.
  var now: @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970) }

  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
  {
    guard hosts.contains(request.url.origin.host), !request.headers.contains(name: "Cookie"),
      let field = jar.field(for: request.url, isProtected: request.isProtected, at: now())
    else { return try await next.proceed(request) }
    var request = request
    request.headers["Cookie"] = field
    return try await next.proceed(request)
  }
}

/// Stores the cookies of responses. Inside the cache, so that it gets the responses to the cache's own
/// requests too, and no stored response.
struct SetCookieInterceptor: Interceptor {
  let jar: CookieJar
  let hosts: Set<String>
  /// The system's clock, in seconds since 1970.
  var now: @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970) }

  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
  {
    let response = try await next.proceed(request)
    guard hosts.contains(request.url.origin.host) else { return response }
    let fields = response.headers.values(of: "Set-Cookie")
    if !fields.isEmpty {
      jar.store(fields, from: request.url, isProtected: request.isProtected, at: now())
    }
    return response
  }
}

extension NetOptRequest {
  /// Whether the request goes over TLS to a server whose certificate the client verifies.
  fileprivate var isProtected: Bool { url.origin.scheme == .https && options.verification == .full }
}
