import NetOptCaching
import NetOptCore

/// Follows redirects (RFC 9110, section 15.4). Each hop passes through the rest of the chain and gets its own
/// route, so a redirect to another host goes to an endpoint of that host.
struct RedirectInterceptor: Interceptor {
  /// The request fields that a redirect to another origin drops.
  private let credentialFields: CredentialFields
  /// The hosts whose requests the client signs, or to which it adds credentials. The interceptor does not
  /// follow a redirect to such a host from another origin.
  private let trustingHosts: Set<String>
  /// The hosts whose cookies the client keeps. The interceptor follows a redirect to such a host only from a
  /// host that is also in this set.
  var cookieHosts: Set<String> = []
  /// The client's cache options, which apply to a request without cache options. `nil` when the client has no
  /// cache.
  private let cacheOptions: CacheOptions?

  /// Makes the interceptor.
  ///
  /// - Parameters:
  ///   - credentialFields: the fields that a redirect to another origin drops.
  ///   - trustingHosts: the hosts whose requests the client signs, or to which it adds credentials.
  ///   - cacheOptions: the client's cache options; `nil` when it has no cache.
  init(
    credentialFields: CredentialFields = .standard,
    trustingHosts: Set<String> = [], cacheOptions: CacheOptions? = nil
  ) {
    self.credentialFields = credentialFields
    self.trustingHosts = trustingHosts
    self.cacheOptions = cacheOptions
  }

  /// Whether a response with this status is a redirect, provided that it has a `Location`. A `switch`,
  /// because a look-up in a set would cost each response 180 instructions.
  private static func isRedirect(_ status: Int) -> Bool {
    switch status {
    case 301, 302, 303, 307, 308: true
    default: false
    }
  }

  @inline(__always)
  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
  {
    let response = try await next.proceed(request)
    // Redirects are rare. Their code is in another function, because its local variables would enlarge the
    // frame of every waiting call.
    guard request.options.maxRedirects > 0, Self.isRedirect(response.status) else { return response }
    return try await follow(consume response, to: request, next)
  }

  /// Follows a redirect, and all redirects in the responses that come after it.
  ///
  /// - Parameters:
  ///   - response: the response to `request`.
  ///   - followed: the number of redirects that the call has followed so far.
  /// - Returns: the final response.
  /// - Throws: `tooManyRedirects` beyond `maxRedirects`; the errors of `following` and of the requests.
  private func follow(
    _ response: consuming NetOptResponse, to request: NetOptRequest, _ next: InterceptorChain,
    after followed: Int = 0
  ) async throws(NetOptError) -> NetOptResponse {
    guard let following = try following(response, of: request) else { return response }
    guard followed < request.options.maxRedirects else {
      throw NetOptError(
        .tooManyRedirects, phase: .receive,
        "too many redirects: after \(followed) redirects, \(request.url.brief) redirects again, to \(following.url.brief)",
        endpoint: response.remote, route: response.route)
    }
    // Release the redirect response, which ends the transfer of a body that is still arriving. If the
    // response were kept, a redirect to its own URL would make the next request wait in the cache until this
    // body has ended.
    _ = consume response
    let answer = try await next.proceed(following)
    return try await follow(consume answer, to: following, next, after: followed + 1)
  }

  /// Makes the request that follows a redirect response.
  ///
  /// - Returns: `nil` when the response is no redirect, or is a redirect that netopt does not follow. The
  ///   caller then gets the response itself.
  /// - Throws: `invalidURL` in the phase `receive` when netopt cannot request the URL in `Location`.
  private func following(_ response: NetOptResponse, of request: NetOptRequest) throws(NetOptError)
    -> NetOptRequest?
  {
    guard Self.isRedirect(response.status), response.head.first("Location") != nil else { return nil }
    guard let location = response.head.reference("Location") else {
      throw NetOptError(
        .invalidURL, phase: .receive,
        "\(request.url.brief) was answered \(response.status) with a Location of more than \(HTTPURL.longestReference / 1024) KiB; netopt does not follow it",
        endpoint: response.remote, route: response.route)
    }
    let url: HTTPURL
    do throws(NetOptError) { url = try request.url.resolving(location) } catch {
      throw NetOptError(
        error.code, phase: .receive,
        "\(request.url.brief) was answered \(response.status), and netopt cannot request its Location: \(error.message)",
        endpoint: response.remote, route: response.route)
    }
    // After a redirect from https to http, credentials and responses would travel unencrypted. The caller
    // gets the redirect response and decides.
    if request.url.origin.scheme == .https, url.origin.scheme == .http { return nil }
    guard mayLead(from: request.url.origin, to: url.origin) else { return nil }

    var next = request
    next.url = url
    next.options.cache = (request.options.cache ?? cacheOptions)?.ofRedirected
    // After a 303, each method except HEAD becomes GET. After a 301 or 302, only POST becomes GET (RFC 9110,
    // sections 15.4.2 to 15.4.4).
    let becomesGet =
      response.status == 303
      ? request.method != .head : response.status < 303 && request.method == .post
    if becomesGet {
      next.method = .get
      next.body = .none
      for name in [
        "Content-Type", "Content-Encoding", "Content-Language", "Content-Location", "Content-Length",
        "Content-Digest", "Repr-Digest", "Digest", "Content-MD5", "Last-Modified",
      ] {
        next.headers[name] = nil
      }
    } else if !request.body.isRepeatable {
      // The body cannot be sent again: the first request has consumed the stream.
      return nil
    }
    if url.origin != request.url.origin {
      next.headers = HeaderFields(next.headers.filter { !credentialFields.contains($0.name) })
      // The caller chose the pinned address for the host that redirects, not for this host.
      if case .pinned = next.options.routing { next.options.routing = .automatic }
    }
    return next
  }
}

extension RedirectInterceptor {
  /// Whether a redirect may lead from one origin to another. Without this check, a server could make the
  /// client send a request to another server with the credentials that the client adds.
  func mayLead(from old: Origin, to new: Origin) -> Bool {
    // The client signs and authorizes only requests that the caller makes, and no request that another server
    // asks for in a redirect. A server on another port counts as another server.
    if new != old, trustingHosts.contains(new.host) { return false }
    // Cookies without `Secure` would travel unencrypted.
    if old.scheme == .https, new.scheme == .http, cookieHosts.contains(new.host) { return false }
    // A host in `cookieHosts`, such as a login server, may redirect to another host in `cookieHosts`.
    return !cookieHosts.contains(new.host) || cookieHosts.contains(old.host)
  }
}

extension CacheOptions {
  /// The cache options for the target of a redirect. What the caller declares in `api` or versioned mode
  /// applies to the API, and not to the target, for example a login page. So RFC 9111 decides whether the
  /// cache may store the response of the target.
  fileprivate var ofRedirected: CacheOptions {
    switch mode {
    case .off, .http: self
    case .api, .versioned: CacheOptions(.http, partition: partition)
    }
  }
}
