import NetOptCaching
import NetOptCore

/// Follows redirects (RFC 9110, section 15.4). Each hop goes through the rest of the chain, so it is routed anew: a
/// redirect to another host goes to that host and not to our IP.
struct RedirectInterceptor: Interceptor {
  /// The fields that another origin does not get.
  private let credentialFields: CredentialFields
  /// The hosts whose requests are signed.
  private let signedHosts: Set<String>
  /// How requests use the cache whose options do not say so; `nil` without a cache.
  private let cacheOptions: CacheOptions?

  /// Makes the interceptor.
  ///
  /// - Parameters:
  ///   - credentialFields: the fields that carry credentials.
  ///   - signedHosts: the hosts whose requests are signed.
  ///   - cacheOptions: how requests use the cache whose options do not say so; `nil` without a cache.
  init(
    credentialFields: CredentialFields = CredentialFields(CredentialFields.usual),
    signedHosts: Set<String> = [], cacheOptions: CacheOptions? = nil
  ) {
    self.credentialFields = credentialFields
    self.signedHosts = signedHosts
    self.cacheOptions = cacheOptions
  }

  /// Whether a status may lead elsewhere. Without a set, whose hash would cost each response 180 instructions.
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
    // What follows is rare, and would need room in every call that waits.
    guard request.options.maxRedirects > 0, Self.isRedirect(response.status) else { return response }
    return try await follow(consume response, to: request, next)
  }

  private func follow(
    _ response: consuming NetOptResponse, to request: NetOptRequest, _ next: InterceptorChain,
    after followed: Int = 0
  ) async throws(NetOptError) -> NetOptResponse {
    guard let following = try following(response, of: request) else { return response }
    guard followed < request.options.maxRedirects else {
      throw NetOptError(
        .tooManyRedirects, phase: .receive,
        "after \(followed) redirects \(request.url.brief) redirects once more, to \(following.url.brief)",
        endpoint: response.remote, route: response.route)
    }
    // The redirect's own body came with its head or is not waited for: letting go of it ends its transfer. The cache would have a redirect that
    // leads back to where it came from wait for its end.
    _ = consume response
    let answer = try await next.proceed(following)
    return try await follow(consume answer, to: following, next, after: followed + 1)
  }

  /// The request that a response leads to, or `nil` when the response is the answer.
  ///
  /// - Throws: `invalidURL` in the phase `receive` when `Location` is not a URL that can be requested.
  private func following(_ response: NetOptResponse, of request: NetOptRequest) throws(NetOptError)
    -> NetOptRequest?
  {
    guard Self.isRedirect(response.status), response.head.first("Location") != nil else { return nil }
    guard let location = response.head.reference("Location") else {
      throw NetOptError(
        .invalidURL, phase: .receive,
        "\(request.url.brief) was answered \(response.status) with a Location of more than \(HTTPURL.longestReference / 1024) KiB, which is not followed",
        endpoint: response.remote, route: response.route)
    }
    let url: HTTPURL
    do throws(NetOptError) { url = try request.url.resolving(location) } catch {
      throw NetOptError(
        error.code, phase: .receive,
        "\(request.url.brief) was answered \(response.status), and where that leads cannot be requested: \(error.message)",
        endpoint: response.remote, route: response.route)
    }
    // Credentials and answers would travel in the clear from here on. The caller sees the redirect and may decide.
    if request.url.origin.scheme == .https, url.origin.scheme == .http { return nil }
    // What is signed is what the caller wants to have done, and not what another server wants: one at another port is another one too.
    if url.origin != request.url.origin, signedHosts.contains(url.origin.host) { return nil }

    var next = request
    next.url = url
    next.options.cache = (request.options.cache ?? cacheOptions)?.ofRedirected
    let becomesGet =
      response.status == 303
      ? request.method != .head : response.status < 303 && request.method == .post
    if becomesGet {
      next.method = .get
      next.body = .none
      for name in [
        "Content-Type", "Content-Encoding", "Content-Language", "Content-Location", "Content-Length",
      ] {
        next.headers[name] = nil
      }
    } else if request.body.isStream {
      // The stream has been sent: it is gone.
      return nil
    }
    if url.origin != request.url.origin {
      next.headers = HeaderFields(next.headers.filter { !credentialFields.contains($0.name) })
      // An address was chosen for the host that redirects, not for this one.
      if case .pinned = next.options.routing { next.options.routing = .automatic }
    }
    return next
  }
}

extension CacheOptions {
  /// How the cache is used for the target of a redirect. What the caller declared concerns the API that was asked, and not, say, the login page
  /// that it leads to: the server decides whether that is stored.
  fileprivate var ofRedirected: CacheOptions {
    switch mode {
    case .off, .http: self
    case .api, .versioned: CacheOptions(.http, partition: partition)
    }
  }
}
