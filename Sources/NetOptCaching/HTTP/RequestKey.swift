package import NetOptCore
package import NetOptCrypto

/// The keys and partitions under which responses to requests are stored.
package enum RequestKey {
  /// The key of a URL in `http` mode: the URL as it is (RFC 9111, section 2). The same parameters in another
  /// order are another URL.
  package static func url(_ url: HTTPURL, partition: String) throws(CryptoError) -> CacheKey {
    // "/a" and "/a?" are two URLs.
    try CacheKey(
      api: undeclared(.get, url) + (url.query?.isEmpty == true ? "?" : ""),
      parameters: url.query.map(String.init) ?? "", partition: partition)
  }

  /// The key of a request in `api` or `versioned` mode. It consists of the API's name and the canonical form
  /// of the parameters, both those of the query and those of a posted form. A named API has one partition per
  /// origin, so that a response of one origin never answers a request to another.
  ///
  /// - Parameters:
  ///   - name: the name of the API; `nil` for method, origin and path.
  ///   - query: the query, without the parts that do not belong to the key.
  ///   - body: the request body; empty for a request without a body.
  package static func api(
    _ name: String?, _ request: CacheRequest, query: String?, body: [UInt8], partition: String
  ) throws(CryptoError) -> CacheKey {
    var query = query ?? ""
    // Form parameters in the body of a GET differ from parameters in its query.
    let isForm =
      !request.method.isSafe
      && request.fields["Content-Type"]?.loweredASCII.hasPrefix("application/x-www-form-urlencoded") == true
    // A form that is not UTF-8 has no canonical form. Its digest identifies it, as for any other body.
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

  /// The key of a GET in `api` or `versioned` mode without an API name.
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

  /// The partition for entries that a caller declared without an API name. Without this partition, a declared
  /// key with canonical parameters would equal the `http` key of another URL.
  private static func declared(_ partition: String) -> String { partition + "\0declared" }

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

  /// The partition of a request. It extends the caller's partition for each set of credentials, for each key
  /// that signs requests, and for requests that do not fully verify the server.
  ///
  /// - Parameters:
  ///   - credentialFields: the fields that carry credentials.
  ///   - isVerified: whether the request fully verifies the server.
  ///   - trust: identifies which servers are trusted, and by which rules users are distinguished; empty for
  ///     the defaults.
  ///   - signedBy: identifies the signing key and the scheme.
  ///   - proxyUser: the user name and password of the proxy that answers the request, if any.
  ///   - isAnonymous: whether the request is sent without credentials.
  package static func partition(
    _ named: String, _ request: CacheRequest, credentialFields: CredentialFields, isVerified: Bool,
    trust: String = "", signedBy: String? = nil, proxyUser: String? = nil, isAnonymous: Bool = false
  ) throws(CryptoError) -> String {
    // The parts below begin with a single NUL. Doubling each NUL in the name keeps a name from imitating
    // them.
    var partition =
      named.utf8.contains(0)
      ? String(decoding: named.utf8.flatMap { $0 == 0 ? [0, 0] : [$0] }, as: UTF8.self) : named
    if !trust.isEmpty { partition += "\0trust \(trust)" }
    if !isVerified { partition += "\0unverified" }
    if let signedBy { partition += "\0signed by \(signedBy)" }
    if let proxyUser { partition += "\0proxy \(try digest(of: Array(proxyUser.utf8)))" }
    if request.fields.isEmpty || isAnonymous { return partition }
    var credentials: [UInt8] = []
    for (name, value) in credentialFields.of(request.fields) {
      // Includes the length, so that a value cannot imitate the next field.
      credentials.append(text: "\0\(name)\0\(value.utf8.count)\0\(value)")
    }
    if credentials.isEmpty { return partition }
    return partition + "\0" + (try digest(of: credentials))
  }

  /// The first 16 bytes of a SHA-256 of credentials. It distinguishes credentials and does not reveal them.
  private static func digest(of credentials: [UInt8]) throws(CryptoError) -> String {
    Hex.text(Array(try Digest.of("netopt cache".utf8 + credentials, .sha256).prefix(16)))
  }

  private static func undeclared(_ method: NetOptRequest.Method, _ url: HTTPURL) -> String {
    "\(method.rawValue) \(url.origin)\(url.path)"
  }
}
