/// An HTTP request: method, URL, header fields, body and options. The value is one reference wide; copies
/// share their storage until one of them changes.
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
  /// The header fields. The client adds `Host`, `Content-Length` and the fields for `RequestOptions` when it
  /// sends the request.
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

  /// `options.hedges`, read without copying the other options.
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

  /// Whether the client may send the request a second time when it does not know what happened to the first.
  /// True if the method is idempotent or an `Idempotency-Key` tells the server that both are the same
  /// request, and the body is not a stream. An empty key, or one of punctuation alone, does not count.
  public var mayBeRepeated: Bool { (method.isIdempotent || hasIdempotencyKey) && !body.isStream }

  /// Whether the request has an `Idempotency-Key` field and all such fields have a key. A server may read any
  /// one of several fields.
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

  /// A body from bytes in memory.
  public static func bytes(_ bytes: [UInt8]) -> RequestBody { RequestBody(source: .bytes(bytes)) }

  /// A body from a text, encoded as UTF-8.
  public static func text(_ text: String) -> RequestBody { .bytes(Array(text.utf8)) }

  /// A body that arrives in chunks. The client reads chunks as the connection sends them, at most 256 KiB
  /// ahead.
  ///
  /// - Parameters:
  ///   - length: the total number of bytes, if known. A negative length, or a length that differs from the
  ///     sum of the chunks, fails with `invalidRequest`. The client sends the chunk that completes the length
  ///     only after the sequence has ended.
  ///   - chunks: the chunks. The client iterates the sequence once. It does not repeat bytes that it has
  ///     sent, unless the server did not process the request and at most 128 KiB of the body were sent.
  public static func stream<Chunks: AsyncSequence & Sendable>(
    length: Int64? = nil, _ chunks: Chunks
  ) -> RequestBody where Chunks.Element == [UInt8] {
    RequestBody(source: .stream(length: length) { ChunkIterator(chunks.makeAsyncIterator()) })
  }

  /// The number of bytes, or `nil` if it is unknown before the end.
  public var length: Int64? {
    switch source {
    case .none: 0
    case .bytes(let bytes): Int64(bytes.count)
    case .stream(let length, _): length
    }
  }

  /// Whether the body is a stream. A stream can be sent only once.
  package var isStream: Bool { if case .stream = source { true } else { false } }
}

/// Gives the iterators of all chunk sequences the same failure type.
private struct ChunkIterator<Base: AsyncIteratorProtocol>: AsyncIteratorProtocol
where Base.Element == [UInt8] {
  var base: Base

  init(_ base: Base) { self.base = base }

  mutating func next() async throws -> [UInt8]? { try await next(isolation: #isolation) }

  mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
    do { return try await base.next(isolation: actor) } catch { throw error }
  }
}
