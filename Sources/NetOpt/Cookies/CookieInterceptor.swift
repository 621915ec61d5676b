import FoundationEssentials
import NetOptCore

/// Adds cookies to the attempts to the hosts in `ClientConfiguration.cookieHosts`, and stores the cookies of
/// their responses. Inside the retries, so that no response with cookies is lost.
struct CookieInterceptor: Interceptor {
  let jar = CookieJar()
  let hosts: Set<String>

  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
  {
    guard handles(request) else { return try await next.proceed(request) }
    let url = request.url
    let isProtected = url.origin.scheme == .https
    var request = request
    if !request.headers.contains(name: "Cookie"),
      let field = jar.field(for: url, isProtected: isProtected, at: Self.now)
    {
      request.headers["Cookie"] = field
    }
    let response = try await next.proceed(request)
    let fields = response.headers.values(of: "Set-Cookie")
    if !fields.isEmpty { jar.store(fields, from: url, isProtected: isProtected, at: Self.now) }
    return response
  }

  /// Whether a request may get cookies and its response may set some. Over TLS without verification,
  /// anybody on the path could read and set them.
  fileprivate func handles(_ request: NetOptRequest) -> Bool {
    hosts.contains(request.url.origin.host)
      && (request.options.verification == .full || request.url.origin.scheme == .http)
  }

  /// The system's clock, in seconds since 1970.
  fileprivate static var now: Int64 { Int64(Date().timeIntervalSince1970) }
}

/// Gives requests with different cookies different partitions of the cache. Outside the cache.
///
/// When a cookie changes, the client uses a new partition and never returns to the old one, even if the
/// cookies are later the same again. The reason: a request that changes a resource invalidates entries only
/// in its own partition. So the old partition may contain outdated entries.
struct CookiePartitionInterceptor: Interceptor {
  let cookies: CookieInterceptor
  /// The client's cache options, which apply to a request without cache options.
  let cacheOptions: CacheOptions

  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
  {
    // The cache itself keeps requests with a `Cookie` of their own apart.
    guard cookies.handles(request), !request.headers.contains(name: "Cookie") else {
      return try await next.proceed(request)
    }
    var options = request.options.cache ?? cacheOptions
    options.partition += "\0cookies \(cookies.jar.session(of: request.url, at: CookieInterceptor.now))"
    var request = request
    request.options.cache = options
    return try await next.proceed(request)
  }
}
