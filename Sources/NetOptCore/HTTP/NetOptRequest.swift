public import FoundationEssentials

/// An HTTP request: method, URL, header fields, body and options. The value has the size of one reference.
/// Copies share their storage until one of them changes.
public struct NetOptRequest: Sendable {
  /// The properties of the request, which its copies share. The accessors of `NetOptRequest` describe them.
  @usableFromInline
  struct Parts: Sendable {
    @usableFromInline var method: Method
    @usableFromInline var url: HTTPURL
    @usableFromInline var headers: HeaderFields
    @usableFromInline var body: RequestBody
    @usableFromInline var options: RequestOptions
  }

  @usableFromInline var parts: SharedParts<Parts>

  /// The method.
  @inlinable public var method: Method {
    _read { yield parts.value.method }
    _modify { yield &parts.value.method }
  }
  /// The URL.
  @inlinable public var url: HTTPURL {
    _read { yield parts.value.url }
    _modify { yield &parts.value.url }
  }
  /// The header fields. When the client sends the request, it adds `Host`, `Content-Length` and the fields
  /// that `RequestOptions` requires, such as `Accept-Encoding`.
  @inlinable public var headers: HeaderFields {
    _read { yield parts.value.headers }
    _modify { yield &parts.value.headers }
  }
  /// The body.
  @inlinable public var body: RequestBody {
    _read { yield parts.value.body }
    _modify { yield &parts.value.body }
  }
  /// The limits and preferences of this request.
  @inlinable public var options: RequestOptions {
    _read { yield parts.value.options }
    _modify { yield &parts.value.options }
  }

  /// `RequestOptions.hedges` of this request. Reading it does not copy the other options.
  @inlinable package var hedges: Bool { parts.value.options.hedges }

  /// Creates a request.
  public init(
    _ method: Method, _ url: HTTPURL, headers: HeaderFields = [:], body: RequestBody = .none,
    options: RequestOptions = RequestOptions()
  ) {
    parts = SharedParts(Parts(method: method, url: url, headers: headers, body: body, options: options))
  }

  /// Creates a request from the text of a URL.
  ///
  /// - Throws: `NetOptError.Code.invalidURL`.
  public init(
    _ method: Method, _ url: String, headers: HeaderFields = [:], body: RequestBody = .none,
    options: RequestOptions = RequestOptions()
  ) throws(NetOptError) {
    self.init(method, try HTTPURL(url), headers: headers, body: body, options: options)
  }

  /// Whether the client may send the request again when it does not know whether a server processed it. This
  /// requires two things. The method is idempotent, or the request has an `Idempotency-Key`, by which the
  /// server recognises a repeated request. And the body can be produced again: it is not a `stream`. A key
  /// that is empty or only punctuation does not count.
  public var mayBeRepeated: Bool { (method.isIdempotent || hasIdempotencyKey) && body.isRepeatable }

  /// Whether the request has an `Idempotency-Key` field, and every such field contains a key. Every field
  /// must, because a server may read any of them.
  private var hasIdempotencyKey: Bool {
    let values = headers.values(of: "Idempotency-Key")
    return !values.isEmpty
      && values.allSatisfy { value in
        value.utf8.prefix { $0 != UInt8(ascii: ";") }.contains {
          $0 >= 0x80 || ByteClass.isUnreserved($0) || "+/=".utf8.contains($0)
        }
      }
  }
}

extension NetOptRequest {
  /// The request with the `Content-Type` and `Content-Encoding` of its body (`RequestBody.contentType`,
  /// `RequestBody.contentEncoding`). Fields that the request already has stay.
  @inlinable package var withContentFields: NetOptRequest {
    body.contentType == nil && body.contentEncoding == nil ? self : addingContentFields
  }

  @inline(never)
  @usableFromInline
  var addingContentFields: NetOptRequest {
    var request = self
    for (name, value) in [("Content-Type", body.contentType), ("Content-Encoding", body.contentEncoding)] {
      if let value, !headers.contains(name: name) { request.headers[name] = value }
    }
    return request
  }

  /// Returns the request with further fields. A field that the request already has stays.
  package func adding(_ fields: HeaderFields) -> NetOptRequest {
    var request = self
    for field in fields where !headers.contains(name: field.name) { request.headers.append(field) }
    return request
  }

  /// Creates a request from Foundation's `URL`.
  ///
  /// - Throws: `NetOptError.Code.invalidURL`, also for a relative URL.
  public init(
    _ method: Method, _ url: URL, headers: HeaderFields = [:], body: RequestBody = .none,
    options: RequestOptions = RequestOptions()
  ) throws(NetOptError) {
    try self.init(method, url.absoluteString, headers: headers, body: body, options: options)
  }
}

extension NetOptRequest: CustomStringConvertible, CustomReflectable {
  /// The method and the URL without secret parameters (`HTTPURL.shown`).
  public var description: String { "\(method) \(url.shown)" }

  /// The output of `dump`: the method, the URL without secret parameters, the field names, and the length of
  /// the body.
  public var customMirror: Mirror {
    Mirror(
      self,
      children: [
        "method": method.rawValue, "url": url.shown, "headers": headers.map(\.name),
        "bodyLength": body.length as Any,
      ], displayStyle: .struct)
  }
}
