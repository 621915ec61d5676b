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
  /// server recognises a repeated request. And the body is not a stream. A key that is empty or only
  /// punctuation does not count.
  public var mayBeRepeated: Bool { (method.isIdempotent || hasIdempotencyKey) && !body.isStream }

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
  /// Where the bytes of a body come from.
  package enum Source: Sendable {
    case none
    case bytes([UInt8])
    /// Chunks that arrive one after the other. `length` is the number of bytes, if known. The closure makes
    /// the iterator of the chunks.
    case stream(length: Int64?, @Sendable () -> any AsyncIteratorProtocol<[UInt8], any Error>)
  }

  /// Where the bytes come from.
  package let source: Source

  /// No body.
  public static let none = RequestBody(source: .none)

  /// A body from bytes in memory.
  public static func bytes(_ bytes: [UInt8]) -> RequestBody { RequestBody(source: .bytes(bytes)) }

  /// A body from a text, encoded as UTF-8.
  public static func text(_ text: String) -> RequestBody { .bytes(Array(text.utf8)) }

  /// A body that the program produces in chunks. The client reads no chunk while 256 KiB or more
  /// wait to be sent.
  ///
  /// - Parameters:
  ///   - length: the total number of bytes, if known. If the length is negative or differs from the sum of
  ///     the chunks, the request fails with `invalidRequest`. A server that has received `length` bytes
  ///     processes the request. So the client sends the chunk that completes the length only after the
  ///     sequence has ended without further bytes.
  ///   - chunks: the chunks. The client iterates the sequence once. It can send the body again only if no
  ///     server processed the request and at most 128 KiB of the body were sent.
  public static func stream<Chunks: AsyncSequence & Sendable>(
    length: Int64? = nil, _ chunks: Chunks
  ) -> RequestBody where Chunks.Element == [UInt8] {
    RequestBody(source: .stream(length: length) { ChunkIterator(chunks.makeAsyncIterator()) })
  }

  /// The number of bytes; `nil` for a stream of unknown length.
  public var length: Int64? {
    switch source {
    case .none: 0
    case .bytes(let bytes): Int64(bytes.count)
    case .stream(let length, _): length
    }
  }

  /// Whether the body is a stream. The client reads a stream only once, and keeps at most the first 128 KiB.
  /// So it does not retry a request with a stream, and follows no redirect that needs the body again. It
  /// sends the request again only within an attempt, while it has kept all bytes that were sent.
  package var isStream: Bool { if case .stream = source { true } else { false } }
}

/// Wraps the iterator of a chunk sequence, so that it throws `any Error` whatever the sequence throws.
private struct ChunkIterator<Base: AsyncIteratorProtocol>: AsyncIteratorProtocol
where Base.Element == [UInt8] {
  var base: Base

  init(_ base: Base) { self.base = base }

  mutating func next() async throws -> [UInt8]? { try await next(isolation: #isolation) }

  mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
    do { return try await base.next(isolation: actor) } catch { throw error }
  }
}
