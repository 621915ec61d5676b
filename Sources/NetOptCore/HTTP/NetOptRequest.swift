/// A request: what is sent, and how. A value that is one reference: copies share what they hold until one of them is changed.
public struct NetOptRequest: Sendable {
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
  /// The header fields; `Host`, `Content-Length` and what `RequestOptions` asks for are added when it is sent.
  @inlinable public var headers: HeaderFields {
    _read { yield parts.value.headers }
    _modify { yield &parts.value.headers }
  }
  /// The body.
  @inlinable public var body: RequestBody {
    _read { yield parts.value.body }
    _modify { yield &parts.value.body }
  }
  /// Limits and wishes for this request alone.
  @inlinable public var options: RequestOptions {
    _read { yield parts.value.options }
    _modify { yield &parts.value.options }
  }

  /// `options.hedges`, without a copy of the others.
  @inlinable package var hedges: Bool { parts.value.options.hedges }

  /// Makes a request.
  public init(
    _ method: Method, _ url: HTTPURL, headers: HeaderFields = [:], body: RequestBody = .none,
    options: RequestOptions = RequestOptions()
  ) {
    parts = SharedParts(Parts(method: method, url: url, headers: headers, body: body, options: options))
  }

  /// Makes a request from a URL's text.
  ///
  /// - Throws: `NetOptError.Code.invalidURL`.
  public init(
    _ method: Method, _ url: String, headers: HeaderFields = [:], body: RequestBody = .none,
    options: RequestOptions = RequestOptions()
  ) throws(NetOptError) {
    self.init(method, try HTTPURL(url), headers: headers, body: body, options: options)
  }

  /// Whether the request may be sent a second time when nothing is known of the first: the method is idempotent, or
  /// an `Idempotency-Key` tells the server that both are one; and the body is not a stream, which is gone. An empty key, or an empty string in
  /// quotation marks (RFC 9651, section 3.3.3), tells a server nothing.
  public var mayBeRepeated: Bool { (method.isIdempotent || hasIdempotencyKey) && !body.isStream }

  /// Whether there is a field `Idempotency-Key`, and none without a key: of several fields a server may read any one.
  private var hasIdempotencyKey: Bool {
    let values = headers.values(of: "Idempotency-Key")
    return !values.isEmpty
      && values.allSatisfy { value in
        let key = value.utf8.prefix { $0 != UInt8(ascii: ";") }.filter { !" \t".utf8.contains($0) }
        return !key.isEmpty && !key.elementsEqual("\"\"".utf8)
      }
  }
}

extension NetOptRequest: CustomStringConvertible, CustomReflectable {
  /// Method and URL, without secret parameters (`HTTPURL.shown`).
  public var description: String { "\(method) \(url.shown)" }

  /// What `dump` shows: method, URL without secret parameters, the names of the fields, and the length of the body.
  public var customMirror: Mirror {
    Mirror(
      self,
      children: [
        "method": method.rawValue, "url": url.shown, "headers": headers.map(\.name),
        "bodyLength": body.length as Any,
      ], displayStyle: .struct)
  }
}

/// The body of a request.
public struct RequestBody: Sendable {
  package enum Source: Sendable {
    case none
    case bytes([UInt8])
    case stream(length: Int64?, @Sendable () -> any AsyncIteratorProtocol<[UInt8], any Error>)
  }

  package let source: Source

  /// No body.
  public static let none = RequestBody(source: .none)

  /// A body from memory.
  public static func bytes(_ bytes: [UInt8]) -> RequestBody { RequestBody(source: .bytes(bytes)) }

  /// A body from memory: the text's UTF-8.
  public static func text(_ text: String) -> RequestBody { .bytes(Array(text.utf8)) }

  /// A body that comes chunk by chunk. Chunks are asked for as the connection takes them, at most 256 KiB ahead.
  ///
  /// - Parameters:
  ///   - length: how many bytes the chunks add up to, when that is known; another number, or one below 0, is `invalidRequest`. The
  ///     chunk that completes it is sent when the sequence has ended.
  ///   - chunks: the chunks. The sequence is iterated once: what was sent of it is not repeated, unless a server did not process the
  ///     request and had been sent no more than 128 KiB of it.
  public static func stream<Chunks: AsyncSequence & Sendable>(
    length: Int64? = nil, _ chunks: Chunks
  ) -> RequestBody where Chunks.Element == [UInt8] {
    RequestBody(source: .stream(length: length) { ChunkIterator(chunks.makeAsyncIterator()) })
  }

  /// The number of bytes, or `nil` when it is not known before the end.
  public var length: Int64? {
    switch source {
    case .none: 0
    case .bytes(let bytes): Int64(bytes.count)
    case .stream(let length, _): length
    }
  }

  /// Whether the body is a stream, which can be sent only once.
  package var isStream: Bool { if case .stream = source { true } else { false } }
}

/// Gives the iterators of all sequences of chunks one failure type.
private struct ChunkIterator<Base: AsyncIteratorProtocol>: AsyncIteratorProtocol
where Base.Element == [UInt8] {
  var base: Base

  init(_ base: Base) { self.base = base }

  mutating func next() async throws -> [UInt8]? { try await next(isolation: #isolation) }

  mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
    do { return try await base.next(isolation: actor) } catch { throw error }
  }
}
