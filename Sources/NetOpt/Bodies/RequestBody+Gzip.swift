public import NetOptCore

/// Compressed bodies.
extension RequestBody {
  /// A body compressed with gzip (RFC 1952), with the content coding `gzip` and the media type of the
  /// original. The server must support compressed requests; many do not.
  ///
  /// A body in memory is compressed at once. Any other body is compressed while it is sent, so its length is
  /// not known in advance.
  ///
  /// ```swift
  /// let body = try RequestBody.gzip(.json(events))
  /// ```
  ///
  /// - Parameters:
  ///   - body: the body to compress.
  ///   - level: the level of compression, from 1 (fast) to 9 (small). Default: 6.
  /// - Throws: `invalidRequest` for another level, for a body that has a content coding already, and for a
  ///   negative length; `libraryFailed` if zlib has no memory.
  public static func gzip(_ body: RequestBody, level: Int = 6) throws(NetOptError) -> RequestBody {
    guard 1...9 ~= level, body.contentEncoding == nil else {
      throw NetOptError(
        .invalidRequest, phase: .send,
        body.contentEncoding == nil
          ? "the level of a gzip body is \(level); it must be from 1 to 9"
          : "the body to compress has the content coding \(body.contentEncoding ?? "") already")
    }
    var compressed: RequestBody
    switch body.source {
    case .none: compressed = .bytes(try GzipCompressor(level).compress([], isLast: true))
    case .bytes(let bytes): compressed = .bytes(try GzipCompressor(level).compress(bytes, isLast: true))
    case .stream(let length, let isRepeatable, let makeIterator):
      if let length, length < 0 { throw AnnouncedLength.impossible }
      compressed = RequestBody(
        source: .stream(length: nil, isRepeatable: isRepeatable) {
          GzipIterator(level, length, makeIterator($0))
        })
    }
    compressed.contentType = body.contentType
    compressed.contentEncoding = "gzip"
    return compressed
  }
}

/// Compresses the chunks of a stream.
private struct GzipIterator: AsyncIteratorProtocol {
  private let level: Int
  private var announced: AnnouncedLength
  private var chunks: any AsyncIteratorProtocol<[UInt8], any Error>
  private var compressor: GzipCompressor?
  private var isOver = false

  init(_ level: Int, _ length: Int64?, _ chunks: any AsyncIteratorProtocol<[UInt8], any Error>) {
    (self.level, announced, self.chunks) = (level, AnnouncedLength(length), chunks)
  }

  mutating func next() async throws -> [UInt8]? { try await next(isolation: #isolation) }

  mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
    while !isOver {
      let compressor = try self.compressor ?? GzipCompressor(level)
      self.compressor = compressor
      let chunk = try await chunks.next(isolation: actor)
      try announced.take(chunk)
      isOver = chunk == nil
      let out = try compressor.compress(chunk ?? [], isLast: isOver)
      // zlib keeps small inputs until it has a block of them.
      if !out.isEmpty { return out }
    }
    return nil
  }
}
