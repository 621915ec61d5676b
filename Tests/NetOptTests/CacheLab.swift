import NetOptCaching
import NetOptCore
import NetOptLocking
import NetOptTestSupport
import Testing

@testable import NetOpt

/// A client with a cache, on a scripted transport, and a date that stands still until a test moves it.
final class CacheLab: Sendable {
  typealias Handler = @Sendable (NetOptRequest, Int) async throws(NetOptError) -> NetOptResponse

  /// Hands each request to the script, with its number from 1.
  final class ScriptedTransport: Transport {
    private let handler: Handler
    private let connecting: @Sendable () async -> Void
    private let received = Locked<[NetOptRequest]>([])

    init(_ handler: @escaping Handler, _ connecting: @escaping @Sendable () async -> Void) {
      self.handler = handler
      self.connecting = connecting
    }

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
  ///   - connecting: runs before a request is sent.
  ///   - handler: answers requests.
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

  private final class Now: Sendable { let value = Locked<Int64>(1_795_219_200_000) }
  private let now: Now

  /// Moves the date forward by a number of seconds.
  func wait(_ seconds: Int64) { now.value.withLock { $0 += seconds * 1000 } }

  /// The current date as an HTTP date.
  var date: String { CivilTime(seconds: now.value.withLock(\.self) / 1000).http }

  var sent: Int { transport.requests.count }
  var inFlightFetches: InFlightFetches { get throws { try #require(client.cache).inFlightFetches } }

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

  /// A response of the script.
  static func response(
    _ request: NetOptRequest, _ status: Int = 200, _ fields: HeaderFields = [:], _ body: String = ""
  ) -> NetOptResponse {
    response(request, status, fields, ResponseBody(Array(body.utf8)))
  }

  /// A response of the script with the given body.
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

/// A body whose timings tell when its request was sent.
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

/// A body whose chunks a test releases.
final class GatedBody: BodySource {
  private let chunks: [[UInt8]]
  private let gates: [Latch]
  private let position = Locked(0)
  private let failure: NetOptError?
  let timings = Timings()

  /// Makes a body.
  ///
  /// - Parameters:
  ///   - gates: one latch for each chunk, which holds the chunk back until the latch is open.
  ///   - failure: the error that comes in place of the end.
  init(_ chunks: [String], gates: [Latch] = [], failure: NetOptError? = nil) {
    self.chunks = chunks.map { Array($0.utf8) }
    self.gates = gates
    self.failure = failure
  }

  /// How many chunks were requested.
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
