/// The body of a request.
public struct RequestBody: Sendable {
  /// Where the bytes of a body come from.
  package enum Source: Sendable {
    case none
    case bytes([UInt8])
    /// Chunks that arrive one after the other. `length` is the number of bytes, if known. `isRepeatable` says
    /// whether each call of the closure returns an iterator over the whole body; otherwise the closure may be
    /// called only once.
    case stream(length: Int64?, isRepeatable: Bool, MakeChunks)
  }

  /// Makes an iterator over the chunks of a body.
  package typealias MakeChunks = @Sendable (Use) -> any AsyncIteratorProtocol<[UInt8], any Error>

  /// What a body is read for.
  package enum Use: Sendable {
    /// To send it to the server.
    case sending
    /// To sign it.
    case signing
  }

  /// Where the bytes come from.
  package let source: Source
  /// The media type of the body (RFC 9110, section 8.3.1). `NetOptClient.execute` adds it to the request as
  /// `Content-Type`, before the interceptors, unless the request has this field. So an interceptor that
  /// changes the body must set the field itself. `nil` for a body whose type is not known: no field is added.
  public var contentType: String?
  /// The content coding of the body (RFC 9110, section 8.4). `NetOptClient.execute` adds it to the request as
  /// `Content-Encoding`, in the same way as `contentType`. `nil` for a body without a coding.
  public var contentEncoding: String?

  package init(source: Source, contentType: String? = nil) {
    self.source = source
    self.contentType = contentType
  }

  /// No body.
  public static let none = RequestBody(source: .none)

  /// A body from bytes in memory.
  public static func bytes(_ bytes: [UInt8]) -> RequestBody { RequestBody(source: .bytes(bytes)) }

  /// A body from bytes in memory, such as Foundation's `Data`.
  public static func bytes(_ bytes: some Sequence<UInt8>) -> RequestBody { .bytes(Array(bytes)) }

  /// A body from a text, encoded as UTF-8.
  public static func text(_ text: String) -> RequestBody { .bytes(Array(text.utf8)) }

  /// A body that the program produces in chunks. The client reads no chunk while 256 KiB or more
  /// wait to be sent.
  ///
  /// For a file use `file`, which the client can send again.
  ///
  /// - Parameters:
  ///   - length: the total number of bytes, if known. If the length is negative or differs from the sum of
  ///     the chunks, the request fails with `invalidRequest`. The client holds the last chunk back until the
  ///     sequence ends, so that no server processes a body to which more bytes belong.
  ///   - chunks: the chunks. The client iterates the sequence once. It can send the body again only if no
  ///     server processed the request and at most 128 KiB of the body were sent.
  public static func stream<Chunks: AsyncSequence & Sendable>(
    length: Int64? = nil, _ chunks: Chunks
  ) -> RequestBody where Chunks.Element == [UInt8] {
    RequestBody(
      source: .stream(length: length, isRepeatable: false) { _ in ErasedIterator(chunks.makeAsyncIterator()) }
    )
  }

  /// The number of bytes; `nil` for a stream of unknown length.
  public var length: Int64? {
    switch source {
    case .none: 0
    case .bytes(let bytes): Int64(bytes.count)
    case .stream(let length, _, _): length
    }
  }

  /// Whether the whole body is in memory, or there is none.
  package var isInMemory: Bool { if case .stream = source { false } else { true } }

  /// Whether the client can produce the body as often as it must send it. False for `stream`: the client
  /// reads such a body only once, and keeps at most the first 128 KiB. So it does not retry the request, and
  /// follows no redirect that needs the body again. It sends the request again only within an attempt, while
  /// it has kept all bytes that were sent.
  package var isRepeatable: Bool { if case .stream(_, false, _) = source { false } else { true } }
}

extension RequestBody: CustomStringConvertible, CustomReflectable {
  /// The length and the media type. The bytes may contain secrets.
  public var description: String {
    "\(length.map { "\($0) bytes" } ?? "a stream")\(contentType.map { " of \($0)" } ?? "")"
  }

  /// A mirror without children, so that a dump does not show the bytes.
  public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}

/// Wraps the iterator of a chunk sequence, so that it throws `any Error` whatever the sequence throws.
struct ErasedIterator<Base: AsyncIteratorProtocol>: AsyncIteratorProtocol
where Base.Element == [UInt8] {
  var base: Base

  init(_ base: Base) { self.base = base }

  mutating func next() async throws -> [UInt8]? { try await next(isolation: #isolation) }

  mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
    do { return try await base.next(isolation: actor) } catch { throw error }
  }
}
