package import NetOptCore

/// The parts of a request that a cache policy uses.
package struct CacheRequest: Sendable {
  /// The method.
  package let method: NetOptRequest.Method
  /// The URL.
  package let url: HTTPURL
  /// The header fields that the caller set.
  package let fields: HeaderFields
  /// The directives of `Cache-Control`. In a request without `Cache-Control`, `Pragma: no-cache` counts as
  /// `no-cache` (RFC 9111, section 5.4). So does a `Pragma` that is too long to be read.
  package let control: CacheControl
  /// The conditions of the caller, such as `If-None-Match`.
  package let conditions: RequestConditions
  /// The value of `Range`; `nil` for methods other than GET (RFC 9110, section 14.2).
  package let range: String?
  /// Whether the caller wants the content decoded.
  package let wantsDecoded: Bool

  /// The `User-Agent` that the client sends when the caller sets none; empty when it sends none.
  let userAgent: String

  /// The fields whose values `Vary` compares: those of the caller, and the client's `User-Agent` if the
  /// caller sets none.
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

  /// Whether the method is GET or HEAD. A stored response can answer only these.
  var isAnswerable: Bool { method == .get || method == .head }

  /// Whether the content of the entry has the form that the request wants. It is false when the request wants
  /// decoded content, and the entry has encoded content that libcurl could decode. Such an entry was stored,
  /// for example, for a request that did not want decoded content.
  package func acceptsCoding(of entry: CacheEntry) -> Bool {
    !wantsDecoded || !ContentCoding.isDecodable(entry.fields)
  }
}

/// Content codings (RFC 9110, section 8.4).
package enum ContentCoding {
  /// The codings that libcurl can decode, in lowercase.
  private static let known: Set = ["gzip", "x-gzip", "deflate", "br", "zstd", "identity"]

  /// Whether the fields name content codings, and libcurl can decode all of them. `identity` counts as a
  /// coding.
  package static func isDecodable(_ fields: HeaderFields) -> Bool {
    let codings = (FieldText.members(fields.values(of: "Content-Encoding")) ?? []).map { $0.loweredASCII }
    return !codings.isEmpty && codings.allSatisfy(known.contains)
  }
}
