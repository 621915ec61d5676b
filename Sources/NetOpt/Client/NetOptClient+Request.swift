public import NetOptCore

extension NetOptClient {
  /// Makes a request for a URL relative to the base URL of the client
  /// (`ClientConfiguration.Defaults.baseURL`). Sends nothing.
  ///
  /// The path of the base URL counts as a folder: with `https://api.example.com/v1`, `users/7` leads to
  /// `https://api.example.com/v1/users/7`, and `/users/7` to `https://api.example.com/users/7` (RFC 3986,
  /// section 5.2). A reference that leads to another origin is an error. So a path from an untrusted source
  /// cannot choose the server.
  ///
  /// ```swift
  /// let user = try await client.execute(client.request(.get, "users/7"))
  /// ```
  ///
  /// - Parameters:
  ///   - method: the method.
  ///   - reference: the relative URL, percent-encoded. Without a base URL, an absolute URL.
  ///   - headers: the header fields.
  ///   - body: the body.
  ///   - options: the limits and preferences of the request.
  /// - Throws: `invalidURL`.
  public func request(
    _ method: NetOptRequest.Method, _ reference: String, headers: HeaderFields = [:],
    body: RequestBody = .none, options: RequestOptions = RequestOptions()
  ) throws(NetOptError) -> NetOptRequest {
    guard let base = defaults.baseURL else {
      return try NetOptRequest(method, reference, headers: headers, body: body, options: options)
    }
    // `resolving` encodes spaces, which servers send in `Location`. Here they are a mistake of the program, as
    // in `NetOptRequest`.
    guard !reference.utf8.contains(UInt8(ascii: " ")) else {
      throw NetOptError(
        .invalidURL, phase: .resolve,
        "\(HTTPURL.shown(given: reference)) is not a usable URL: it has a space; write %20")
    }
    let folder = base.path.hasSuffix("/") ? base : HTTPURL(origin: base.origin, target: "\(base.path)/")
    let url = try folder.resolving(reference)
    guard url.origin == base.origin else {
      throw NetOptError(
        .invalidURL, phase: .resolve,
        "\(HTTPURL.shown(given: reference)) leads to \(url.origin), but the base URL of the client to \(base.origin); make the request with NetOptRequest"
      )
    }
    return NetOptRequest(method, url, headers: headers, body: body, options: options)
  }

  /// Whether a redirect may lead from the server of one URL to that of another. If not, a server could have a
  /// request made with the credentials that this client adds. For callers that follow redirects themselves.
  package func allowsRedirect(from old: HTTPURL, to new: HTTPURL) -> Bool {
    redirect.mayLead(from: old.origin, to: new.origin)
  }
}
