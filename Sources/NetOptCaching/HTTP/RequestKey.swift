package import NetOptCore
package import NetOptCrypto

/// What requests are found by.
package enum RequestKey {
  /// The key of a URL in `http` mode: the URL as it is (RFC 9111, section 2). Parameters in another order are another URL.
  package static func url(_ url: HTTPURL, partition: String) throws(CryptoError) -> CacheKey {
    // "/a" and "/a?" are two URLs.
    try CacheKey(
      api: undeclared(.get, url) + (url.query?.isEmpty == true ? "?" : ""),
      parameters: url.query.map(String.init) ?? "", partition: partition)
  }

  /// The key of a request to an API: its name, and the canonical form of the parameters, of the query and of a form that is
  /// posted. A name has a partition for each origin: whoever answers for one says nothing for another.
  ///
  /// - Parameters:
  ///   - name: the API's; `nil` for method, origin and path.
  ///   - query: the query without what is no part of the key.
  ///   - body: what is posted; empty for a request without a body.
  package static func api(
    _ name: String?, _ request: CacheRequest, query: String?, body: [UInt8], partition: String
  ) throws(CryptoError) -> CacheKey {
    var query = query ?? ""
    // What GET says in a body is not what it says in its query.
    let isForm =
      !request.method.isSafe
      && request.fields["Content-Type"]?.loweredASCII.hasPrefix("application/x-www-form-urlencoded") == true
    // What is no UTF-8 has no canonical form, and is told apart by its digest as any other body.
    let form = isForm ? String(validating: body, as: UTF8.self) : nil
    if let form, !form.isEmpty { query += (query.isEmpty ? "" : "&") + form }
    var parameters = try canonical(query)
    if form == nil, !body.isEmpty {
      // What is posted otherwise stands there by its digest, behind a byte that no parameter has.
      parameters.append(0)
      parameters.append(hex: try Digest.of(body, .sha256))
    }
    return try CacheKey(
      api: name ?? undeclared(request.method == .head ? .get : request.method, request.url),
      parameters: String(decoding: parameters, as: UTF8.self),
      partition: name == nil ? declared(partition) : partition + "\0at \(request.url.origin)")
  }

  /// The key of a GET of a URL whose caller declared how it is cached, and gave it no name.
  ///
  /// - Parameter query: the query that counts; the URL's by default.
  package static func canonical(
    _ url: HTTPURL, query: String? = nil, partition: String
  ) throws(CryptoError) -> CacheKey {
    try CacheKey(
      api: undeclared(.get, url),
      parameters: String(decoding: try canonical(query ?? url.query.map(String.init) ?? ""), as: UTF8.self),
      partition: declared(partition))
  }

  /// The partition of what callers have declared of a URL. Without it, a declared key with canonical parameters would be the `http` key of another
  /// URL.
  private static func declared(_ partition: String) -> String { partition + "\0declared" }

  private static func canonical(_ query: String) throws(CryptoError) -> [UInt8] {
    var parameters: [UInt8] = []
    if PercentEncoding.fault(in: query) == nil {
      QueryParameters.append(query: query, plus: true, to: &parameters)
    } else {
      // Without a canonical form it is told apart by its digest, behind a byte that neither a parameter nor a body's digest has.
      parameters.append(1)
      parameters.append(hex: try Digest.of(query, .sha256))
    }
    return parameters
  }

  /// The partition that a request belongs to: the caller's, apart for each set of credentials, for each key that requests are signed
  /// with on their way, and for requests that did not check who answers.
  ///
  /// - Parameters:
  ///   - credentialFields: the fields that carry credentials.
  ///   - trust: tells apart whose answers are believed, and by which rules users are told apart; empty for what is usual.
  ///   - signedBy: what tells the key from others, with the scheme.
  ///   - proxyUser: the user name and password of the proxy that answers the request, if it has any.
  ///   - isAnonymous: whether credentials are left out of it.
  package static func partition(
    _ named: String, _ request: CacheRequest, credentialFields: CredentialFields, isVerified: Bool,
    trust: String = "", signedBy: String? = nil, proxyUser: String? = nil, isAnonymous: Bool = false
  ) throws(CryptoError) -> String {
    // What follows begins with a NUL of its own, which no name can stand for.
    var partition = named.utf8.contains(0) ? named.replacing("\0", with: "\0\0") : named
    if !trust.isEmpty { partition += "\0trust \(trust)" }
    if !isVerified { partition += "\0unverified" }
    if let signedBy { partition += "\0signed by \(signedBy)" }
    if let proxyUser { partition += "\0proxy \(try digest(of: Array(proxyUser.utf8)))" }
    if request.fields.isEmpty || isAnonymous { return partition }
    var credentials: [UInt8] = []
    for (name, value) in credentialFields.of(request.fields) {
      // With the lengths, so that nothing in a value stands for the next one.
      credentials.append(text: "\0\(name)\0\(value.utf8.count)\0\(value)")
    }
    if credentials.isEmpty { return partition }
    return partition + "\0" + (try digest(of: credentials))
  }

  /// Half a digest of credentials. It tells them apart, and does not reveal them.
  private static func digest(of credentials: [UInt8]) throws(CryptoError) -> String {
    Hex.text(Array(try Digest.of("netopt cache".utf8 + credentials, .sha256).prefix(16)))
  }

  private static func undeclared(_ method: NetOptRequest.Method, _ url: HTTPURL) -> String {
    "\(method.rawValue) \(url.origin)\(url.path)"
  }
}
