import NetOptCore

/// The body of a request as a stream of chunks, with the pauses and the failure of its plan.
struct UploadChunks: AsyncSequence, Sendable {
  typealias Element = [UInt8]
  typealias Failure = any Error

  /// The error that the stream throws when its plan says so.
  struct Failed: Error {}

  /// The complete body.
  let content: [UInt8]
  let plan: RequestPlan.Upload.Stream

  struct AsyncIterator: AsyncIteratorProtocol {
    let content: [UInt8]
    let plan: RequestPlan.Upload.Stream
    /// The number of bytes that were returned so far.
    var position = 0

    mutating func next() async throws -> [UInt8]? { try await next(isolation: nil) }

    mutating func next(isolation actor: isolated (any Actor)?) async throws -> [UInt8]? {
      if let failure = plan.failsAt, position >= failure { throw Failed() }
      guard position < content.count else { return nil }
      if plan.pause > 0, position > 0 { try await Task.sleep(for: .milliseconds(plan.pause)) }
      let last = plan.failsAt ?? content.count
      let end = position + Swift.min(plan.chunk, last - position)
      defer { position = end }
      return Array(content[position..<end])
    }
  }

  func makeAsyncIterator() -> AsyncIterator { AsyncIterator(content: content, plan: plan) }
}

extension RequestPlan {
  /// Makes the request of the plan.
  ///
  /// - Parameter authority: the host and port of the URL.
  func request(to authority: String) throws(NetOptError) -> NetOptRequest {
    var request = try NetOptRequest(method, "\(host.scheme.rawValue)://\(authority)\(answer.target)")
    request.headers["X-Id"] = "\(index)"
    request.headers["X-Flavour"] = flavour
    if onlyIfCached { request.headers["Cache-Control"] = "only-if-cached, max-stale" }
    if hasKey { request.headers["Idempotency-Key"] = "\"\(index)\"" }
    switch upload {
    case .none: break
    case .bytes(let size): request.body = .bytes(Content.upload(of: index).bytes(size))
    case .stream(let stream):
      request.body = .stream(
        length: stream.tellsLength ? Int64(stream.size) : nil,
        UploadChunks(content: Content.upload(of: index).bytes(stream.size), plan: stream))
    }
    request.options.version = version
    request.options.connection = connection
    request.options.routing = usesDNS ? .dns : .automatic
    request.options.decompress = decompresses
    request.options.hedges = hedges
    request.options.timeout = .milliseconds(timeout)
    if answer.cached == nil { request.options.cache = .off }
    return request
  }
}
