import NetOptCaching
import NetOptCore
import NetOptLocking
import NetOptTestSupport
import Testing

@testable import NetOpt

/// A client with a cache and without a network. A script answers its requests. The cache's clock stands still
/// until a test moves it.
final class CacheLab: Sendable {
  /// The script: answers a request. The number says how many requests have been sent, this one included.
  typealias Handler = @Sendable (NetOptRequest, Int) async throws(NetOptError) -> NetOptResponse

  /// A transport that records each request and lets the script answer it.
  final class ScriptedTransport: Transport {
    /// The script.
    private let handler: Handler
    /// Stands for the time until a connection is ready. The request counts as sent when it returns.
    private let connecting: @Sendable () async -> Void
    private let received = Locked<[NetOptRequest]>([])

    init(_ handler: @escaping Handler, _ connecting: @escaping @Sendable () async -> Void) {
      self.handler = handler
      self.connecting = connecting
    }

    /// The requests that were sent, in order.
    var requests: [NetOptRequest] { received.withLock(\.self) }

    func execute(
      _ request: NetOptRequest, along plan: RoutePlan, in context: CallContext
    ) async throws(NetOptError) -> NetOptResponse {
      await connecting()
      var timings = Timings()
      timings.queue = SystemTimeSource().now() - context.started
      let number = received.withLock { received in
        received.append(request)
        return received.count
      }
      var response = try await handler(request, number)
      if let whole = response.body.whole {
        response.body = ResponseBody(whole, timings: timings)
      } else {
        response.body = ResponseBody(TimedBody(response.body, timings))
      }
      return response
    }

    func connect(
      to endpoint: IPEndpoint, of origin: Origin, within limit: Duration, keep: Bool
    ) async throws(LegError) -> ConnectReport { ConnectReport(connect: .zero) }

    func shutdown() async {}
  }

  let transport: ScriptedTransport
  let client: NetOptClient

  /// Makes a client.
  ///
  /// - Parameters:
  ///   - change: changes the cache's configuration.
  ///   - configure: changes the client's configuration.
  ///   - connecting: runs before each request is sent; a test can delay the request with it.
  ///   - handler: answers the requests.
  init(
    _ change: (inout ClientConfiguration.Cache) -> Void = { _ in },
    configure: (inout ClientConfiguration) -> Void = { _ in },
    connecting: @escaping @Sendable () async -> Void = {}, _ handler: @escaping Handler
  ) throws {
    transport = ScriptedTransport(handler, connecting)
    var configuration = ClientConfiguration()
    configuration.list = .none
    configuration.proxy = .none
    configuration.rankingHistory = .none
    var cache = ClientConfiguration.Cache()
    let now = Now()
    cache.now = { now.value.withLock(\.self) }
    change(&cache)
    configuration.cache = cache
    configure(&configuration)
    client = try NetOptClient(configuration, transport: transport, resolver: StubResolver())
    self.now = now
  }

  /// The time of the cache's clock, in milliseconds since 1970.
  private final class Now: Sendable { let value = Locked<Int64>(1_795_219_200_000) }
  private let now: Now

  /// Moves the cache's clock forward by a number of seconds.
  func wait(_ seconds: Int64) { now.value.withLock { $0 += seconds * 1000 } }

  /// The time of the cache's clock as an HTTP date.
  var date: String { CivilTime(seconds: now.value.withLock(\.self) / 1000).http }

  /// The number of requests that were sent.
  var sent: Int { transport.requests.count }
  /// The running fetches of the cache, and the calls that wait for them.
  var inFlightFetches: InFlightFetches { get throws { try #require(client.responseCache).inFlightFetches } }

  /// Performs a request and reads the response's body.
  func ask(
    _ method: NetOptRequest.Method = .get, _ target: String = "/thing", _ headers: HeaderFields = [:],
    _ change: (inout NetOptRequest) -> Void = { _ in }
  ) async throws -> (response: NetOptResponse, text: String) {
    let response = try await begin(method, target, headers, change)
    return (response, String(decoding: try await response.body.collect(upTo: 1 << 24), as: UTF8.self))
  }

  /// Performs a request and leaves the body unread.
  func begin(
    _ method: NetOptRequest.Method = .get, _ target: String = "/thing", _ headers: HeaderFields = [:],
    _ change: (inout NetOptRequest) -> Void = { _ in }
  ) async throws -> NetOptResponse {
    var request = try NetOptRequest(method, "https://api.test\(target)", headers: headers)
    request.options.maxAttempts = 1
    change(&request)
    return try await client.execute(request)
  }

  /// Makes a response for the script.
  static func response(
    _ request: NetOptRequest, _ status: Int = 200, _ fields: HeaderFields = [:], _ body: String = ""
  ) -> NetOptResponse {
    response(request, status, fields, ResponseBody(Array(body.utf8)))
  }

  /// Makes a response for the script, with a body that may be a stream.
  static func response(
    _ request: NetOptRequest, _ status: Int = 200, _ fields: HeaderFields = [:], _ body: ResponseBody
  ) -> NetOptResponse {
    NetOptResponse(
      url: request.url, head: ResponseHead(status: status, fields: fields), body: body,
      route: RouteReport(
        plan: RoutePlan(
          origin: request.url.origin, policy: .fastest, legs: [RoutePlan.Leg(.dns, source: .dns)]),
        legs: []))
  }
}

/// A response body with the given timings. The cache computes from them when the request was sent.
private final class TimedBody: BodySource {
  private let base: ResponseBody
  let timings: Timings

  init(_ base: ResponseBody, _ timings: Timings) {
    self.base = base
    self.timings = timings
  }

  func next() async throws(NetOptError) -> [UInt8]? {
    var iterator = base.makeAsyncIterator()
    return try await iterator.next()
  }
}

/// A response body whose chunks come when a test releases them.
final class GatedBody: BodySource {
  private let chunks: [[UInt8]]
  private let gates: [Latch]
  /// The number of calls of `next` so far, which is also the index of the next chunk.
  private let position = Locked(0)
  private let failure: NetOptError?
  let timings = Timings()

  /// Makes a body.
  ///
  /// - Parameters:
  ///   - gates: the latches of the first chunks. A latch holds its chunk back until a test opens the latch.
  ///     The chunks without a latch come at once.
  ///   - failure: the error that the reader gets after the last chunk; `nil` for a complete body.
  init(_ chunks: [String], gates: [Latch] = [], failure: NetOptError? = nil) {
    self.chunks = chunks.map { Array($0.utf8) }
    self.gates = gates
    self.failure = failure
  }

  /// How often the reader has asked for a chunk.
  var asked: Int { position.withLock(\.self) }

  func next() async throws(NetOptError) -> [UInt8]? {
    let index = position.withLock { position in
      defer { position += 1 }
      return position
    }
    if index < gates.count {
      do { try await gates[index].wait() } catch {
        throw NetOptError(.cancelled, phase: .receive, "the call was cancelled")
      }
    }
    if index < chunks.count { return chunks[index] }
    if let failure { throw failure }
    return nil
  }
}
