package import NetOptCore
package import NetOptCrypto

/// Computes the key under which the cache stores the response to a request, and the partition, which is a
/// part of the key.
package enum RequestKey {
  /// The key of a URL in `http` mode. It contains the URL unchanged (RFC 9111, section 2), so the same
  /// parameters in another order have another key.
  package static func url(_ url: HTTPURL, partition: String) throws(CryptoError) -> CacheKey {
    // "/a" and "/a?" are different URLs.
    try CacheKey(
      api: undeclared(.get, url) + (url.query?.isEmpty == true ? "?" : ""),
      parameters: url.query.map(String.init) ?? "", partition: partition)
  }

  /// The key of a request in `api` or `versioned` mode. It consists of the API's name and of the canonical
  /// form of the parameters in the query and in a posted form. A named API has one partition for each origin,
  /// so that a response from one origin never answers a request to another origin.
  ///
  /// - Parameters:
  ///   - name: the declared name of the API; if it is `nil`, method, origin and path take its place.
  ///   - query: the query, without the parts that do not belong to the key, such as the version.
  ///   - body: the request body; empty for a request without a body.
  ///   - partition: the result of `partition`.
  package static func api(
    _ name: String?, _ request: CacheRequest, query: String?, body: [UInt8], partition: String
  ) throws(CryptoError) -> CacheKey {
    var query = query ?? ""
    // The body of a GET with a form is not part of the parameters, because they would look like those of the
    // query.
    let isForm =
      !request.method.isSafe
      && request.fields["Content-Type"]?.loweredASCII.hasPrefix("application/x-www-form-urlencoded") == true
    // A form that is not UTF-8 has no canonical form. Its digest represents it in the key, as that of any
    // other body does.
    let form = isForm ? String(validating: body, as: UTF8.self) : nil
    if let form, !form.isEmpty { query += (query.isEmpty ? "" : "&") + form }
    var parameters = try canonical(query)
    if form == nil, !body.isEmpty {
      // The SHA-256 of any other body, after a byte that no parameter contains.
      parameters.append(0)
      parameters.append(hex: try Digest.of(body, .sha256))
    }
    return try CacheKey(
      api: name ?? undeclared(request.method == .head ? .get : request.method, request.url),
      parameters: String(decoding: parameters, as: UTF8.self),
      partition: name == nil ? declared(partition) : partition + "\0at \(request.url.origin)")
  }

  /// The key that the method `api` computes for a GET without an API name and without a body. A change of the
  /// resource at the URL invalidates the entries of this key.
  ///
  /// - Parameter query: the part of the query that belongs to the key; by default the whole query of the URL.
  package static func canonical(
    _ url: HTTPURL, query: String? = nil, partition: String
  ) throws(CryptoError) -> CacheKey {
    try CacheKey(
      api: undeclared(.get, url),
      parameters: String(decoding: try canonical(query ?? url.query.map(String.init) ?? ""), as: UTF8.self),
      partition: declared(partition))
  }

  /// Returns the partition for entries of `api` and `versioned` mode without an API name. It differs from the
  /// partition of `http` mode, because the keys have canonical parameters. In the partition of `http` mode,
  /// such a key could equal the key of another URL.
  private static func declared(_ partition: String) -> String { partition + "\0declared" }

  /// The canonical form of the parameters of a query.
  private static func canonical(_ query: String) throws(CryptoError) -> [UInt8] {
    var parameters: [UInt8] = []
    if PercentEncoding.fault(in: query) == nil {
      QueryParameters.append(query: query, plus: true, to: &parameters)
    } else {
      // A query without a canonical form is identified by its SHA-256, after a byte that neither a parameter
      // nor the digest of a body starts with.
      parameters.append(1)
      parameters.append(hex: try Digest.of(query, .sha256))
    }
    return parameters
  }

  /// The name of the partition of a request. It begins with the name that the caller chose. Other parts
  /// follow for the credentials in the request, the signing key, the proxy's credentials, the settings in
  /// `settingsDigest`, and for a request that does not fully verify the server. Requests that differ in any
  /// of these use different partitions.
  ///
  /// - Parameters:
  ///   - named: the name that the caller chose; may be empty.
  ///   - credentialFields: decides which fields carry credentials.
  ///   - isVerified: whether the request fully verifies the server.
  ///   - settingsDigest: a digest of the client's certificate authorities and of its rules for credential
  ///     fields; empty for the default settings.
  ///   - signedBy: a text that identifies the signing key and the scheme; `nil` for an unsigned request.
  ///   - proxyUser: the user name and password for the proxy that answers the request; `nil` without such a
  ///     proxy.
  ///   - isAnonymous: whether to ignore the credentials in the request's fields. The result is then the
  ///     partition of the same request without credentials.
  package static func partition(
    _ named: String, _ request: CacheRequest, credentialFields: CredentialFields, isVerified: Bool,
    settingsDigest: String = "", signedBy: String? = nil, proxyUser: String? = nil, isAnonymous: Bool = false
  ) throws(CryptoError) -> String {
    // Each part below begins with a single NUL. Each NUL in the name is doubled, so that no name can contain
    // such a part.
    var partition =
      named.utf8.contains(0)
      ? String(decoding: named.utf8.flatMap { $0 == 0 ? [0, 0] : [$0] }, as: UTF8.self) : named
    if !settingsDigest.isEmpty { partition += "\0trust \(settingsDigest)" }
    if !isVerified { partition += "\0unverified" }
    if let signedBy { partition += "\0signed by \(signedBy)" }
    if let proxyUser { partition += "\0proxy \(try digest(of: Array(proxyUser.utf8)))" }
    if request.fields.isEmpty || isAnonymous { return partition }
    var credentials: [UInt8] = []
    for (name, value) in credentialFields.of(request.fields) {
      // The length of the value keeps a value from looking like the next field.
      credentials.append(text: "\0\(name)\0\(value.utf8.count)\0\(value)")
    }
    if credentials.isEmpty { return partition }
    return partition + "\0" + (try digest(of: credentials))
  }

  /// The first 16 bytes of a SHA-256 of credentials, in hexadecimal digits. It distinguishes credentials
  /// without revealing them.
  private static func digest(of credentials: [UInt8]) throws(CryptoError) -> String {
    Hex.text(Array(try Digest.of("netopt cache".utf8 + credentials, .sha256).prefix(16)))
  }

  /// Whether a key may have the declared name of an API in place of method, origin and path.
  package static func mayHaveName(_ key: CacheKey) -> Bool {
    // A declared name may look like a method and an origin. Its partition names the origin.
    !key.text.hasPrefix("GET http") || key.partition.utf8.firstRange(ofBytes: "\0at ") != nil
  }

  /// The text that takes the place of an API's name: method, origin and path.
  private static func undeclared(_ method: NetOptRequest.Method, _ url: HTTPURL) -> String {
    "\(method.rawValue) \(url.origin)\(url.path)"
  }
}
