package import NetOptCore

/// What a policy looks at of a request.
package struct CacheRequest: Sendable {
  /// The method.
  package let method: NetOptRequest.Method
  /// The URL.
  package let url: HTTPURL
  /// The header fields, as the caller gave them.
  package let fields: HeaderFields
  /// Its `Cache-Control`; `Pragma: no-cache` counts when there is none (RFC 9111, section 5.4).
  package let control: CacheControl
  /// Its conditions.
  package let conditions: RequestConditions
  /// Its `Range`; `nil` for other methods than GET (RFC 9110, section 14.2).
  package let range: String?
  /// Whether the answer's content is to be decoded.
  package let wantsDecoded: Bool

  /// What the client puts into `User-Agent` when the caller does not; empty for nothing.
  let userAgent: String

  /// The fields by which a response is selected: the caller's, and the client's own.
  var selecting: HeaderFields {
    guard !userAgent.isEmpty, !fields.contains(name: "User-Agent") else { return fields }
    var fields = fields
    fields["User-Agent"] = userAgent
    return fields
  }

  /// Reads a request.
  ///
  /// - Parameter userAgent: what the client puts into `User-Agent` when the caller does not; empty for nothing.
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

  /// Whether a stored response may answer it.
  var isAnswerable: Bool { method == .get || method == .head }

  /// Whether a stored response is as the request wants it: one that could not be decoded, or was not to be, is none that is.
  package func decodes(_ entry: CacheEntry) -> Bool {
    !wantsDecoded || !ContentCoding.isDecodable(entry.fields)
  }
}

/// Encodings of content (RFC 9110, section 8.4).
package enum ContentCoding {
  private static let known: Set = ["gzip", "x-gzip", "deflate", "br", "zstd", "identity"]

  /// Whether content with these fields is one that libcurl decodes when it is asked to.
  package static func isDecodable(_ fields: HeaderFields) -> Bool {
    let codings = (FieldText.members(fields.values(of: "Content-Encoding")) ?? []).map { $0.loweredASCII }
    return !codings.isEmpty && codings.allSatisfy(known.contains)
  }
}
