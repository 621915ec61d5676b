/// Bodies whose progress the program follows.
extension RequestBody {
  /// Returns the same body, which reports how much of it the client has read for sending.
  ///
  /// ```swift
  /// let body = try RequestBody.file("/tmp/lamp.mp4").reportingProgress { sent, total in
  ///   print(sent, total ?? 0)
  /// }
  /// ```
  ///
  /// The client reads at most 256 KiB and one chunk ahead of the connection, so the server may have received
  /// less than is reported. When the client sends the body again, for a retry or a redirect, the count begins
  /// again. With `RequestOptions.hedges`, the client may send the body twice at once, and the reports of both
  /// mix. Reading the body to sign it is not reported. A body without bytes reports nothing.
  ///
  /// The client reads such a body chunk by chunk even if it is in memory. So the cache treats it as a stream,
  /// and in `api` mode does not store the response.
  ///
  /// - Parameter report: called after each piece of at most 64 KiB (of a `stream`: after each chunk), with
  ///   the number of bytes so far and the length of the body, which is `nil` if it is not known. It must
  ///   not block. The reports of one sending come one after the other, on any thread except the event loop's.
  ///   After a request has failed, one more report may come shortly after the client has thrown the error.
  public func reportingProgress(
    to report: @escaping @Sendable (_ sent: Int64, _ total: Int64?) -> Void
  ) -> RequestBody {
    let isRepeatable = isRepeatable
    let makeChunks: MakeChunks
    switch source {
    case .none: return self
    case .bytes(let bytes):
      if bytes.isEmpty { return self }
      makeChunks = { _ in PieceIterator(rest: bytes[...]) }
    case .stream(_, _, let base): makeChunks = base
    }
    let total = length
    var body = RequestBody(
      source: .stream(length: total, isRepeatable: isRepeatable) { use in
        let chunks = makeChunks(use)
        return switch use {
        case .sending: ReportingIterator(chunks: chunks, total: total, report: report)
        case .signing: chunks
        }
      }, contentType: contentType)
    body.contentEncoding = contentEncoding
    return body
  }
}

/// Iterates over the pieces of a body in memory.
private struct PieceIterator: AsyncIteratorProtocol {
  /// The maximum size of a piece in bytes.
  private static let longest = 64 * 1024

  var rest: ArraySlice<UInt8>

  mutating func next() async throws -> [UInt8]? { try await next(isolation: #isolation) }

  mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
    if rest.isEmpty { return nil }
    defer { rest = rest.dropFirst(Self.longest) }
    return Array(rest.prefix(Self.longest))
  }
}

/// Reports each chunk when the client asks for the next one: then the client has taken the chunk.
private struct ReportingIterator: AsyncIteratorProtocol {
  var chunks: any AsyncIteratorProtocol<[UInt8], any Error>
  let total: Int64?
  let report: @Sendable (Int64, Int64?) -> Void
  var sent: Int64 = 0
  var unreported = 0

  mutating func next() async throws -> [UInt8]? { try await next(isolation: #isolation) }

  mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
    if unreported > 0 {
      sent += Int64(unreported)
      unreported = 0
      report(sent, total)
    }
    let chunk = try await chunks.next(isolation: actor)
    unreported = chunk?.count ?? 0
    return chunk
  }
}
