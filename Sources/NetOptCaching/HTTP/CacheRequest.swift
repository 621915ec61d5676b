package import NetOptCore

/// The parts of a request that a cache policy uses.
package struct CacheRequest: Sendable {
  /// The method.
  package let method: NetOptRequest.Method
  /// The URL.
  package let url: HTTPURL
  /// The header fields that the caller set.
  package let fields: HeaderFields
  /// The directives of `Cache-Control`. `Pragma: no-cache` counts when the request has no `Cache-Control`
  /// (RFC 9111, section 5.4).
  package let control: CacheControl
  /// The conditions of the request.
  package let conditions: RequestConditions
  /// The value of `Range`; `nil` for methods other than GET (RFC 9110, section 14.2).
  package let range: String?
  /// Whether the caller wants the content decoded.
  package let wantsDecoded: Bool

  /// The `User-Agent` that the client sends when the caller sets none; empty when it sends none.
  let userAgent: String

  /// The fields that `Vary` selects by: those of the caller and those that the client adds.
  var fieldsForVary: HeaderFields {
    guard !userAgent.isEmpty, !fields.contains(name: "User-Agent") else { return fields }
    var fields = fields
    fields["User-Agent"] = userAgent
    return fields
  }

  /// Reads a request.
  ///
  /// - Parameter userAgent: the `User-Agent` that the client sends when the caller sets none; empty when it
  ///   sends none.
  package init(_ request: NetOptRequest, userAgent: String = "") {
    self.userAgent = userAgent
    method = request.method
    url = request.url
    let fields = request.headers
    self.fields = fields
    wantsDecoded = request.options.decompress
    conditions = RequestConditions(fields)
    range = fields.isEmpty || method != .get ? nil : fields["Range"]
    var control = CacheControl(fields)
    if !fields.isEmpty, !fields.contains(name: "Cache-Control"),
      FieldText.members(fields.values(of: "Pragma"))?.contains(where: { $0.loweredASCII == "no-cache" })
        ?? true
    {
      control.noCache = true
    }
    self.control = control
  }

  /// Whether a stored response may answer the request, which is so for GET and HEAD.
  var isAnswerable: Bool { method == .get || method == .head }

  /// Whether the entry's content has the form that the request wants. It is false when the request wants
  /// decoded content and the entry is encoded, because it could not be decoded or was fetched without
  /// decoding.
  package func decodes(_ entry: CacheEntry) -> Bool {
    !wantsDecoded || !ContentCoding.isDecodable(entry.fields)
  }
}

/// Content codings (RFC 9110, section 8.4).
package enum ContentCoding {
  private static let known: Set = ["gzip", "x-gzip", "deflate", "br", "zstd", "identity"]

  /// Whether libcurl can decode content with these fields.
  package static func isDecodable(_ fields: HeaderFields) -> Bool {
    let codings = (FieldText.members(fields.values(of: "Content-Encoding")) ?? []).map { $0.loweredASCII }
    return !codings.isEmpty && codings.allSatisfy(known.contains)
  }
}
