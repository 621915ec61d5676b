import NetOpt
import NetOptCore
import NetOptTestSupport
import Testing

@testable import FaultMatrix

/// One of two servers refuses requests over HTTP/2 for some time. No server has processed these requests, so
/// netopt must send them again.
@Suite(.serialized) struct RefusedStreamTests {
  private let site: Site
  private let client: NetOptClient

  init() async throws {
    site = try await Site(isWired: false)
    var configuration = site.configuration()
    configuration.probing.atStart = false
    configuration.connections.perEndpoint = 1
    client = try NetOptClient(configuration)
  }

  /// The result of a request: a response or an error.
  private struct Answer: Sendable {
    /// The id of the request.
    let id: String
    /// The error; `nil` for a response.
    let fault: NetOptError?
    /// Whether the result is a response with the right id and body.
    let isRight: Bool
    /// How the request reached a server; `nil` when this is not known.
    let route: RouteReport?
    /// The number of attempts that led to the response; always 1 for an error.
    var attempts = 1
  }

  /// Sends a request and checks the response.
  ///
  /// - Parameters:
  ///   - address: the only server that the request may use; `nil` when netopt chooses the server.
  ///   - limit: the timeout of the request.
  private func send(
    _ traffic: Traffic, _ id: String, to address: IPAddress? = nil, within limit: Duration = .seconds(10)
  ) async throws -> Answer {
    var request = try NetOptRequest(traffic.method, site.url(traffic, id))
    request.body = traffic.body(of: id)
    request.options.timeout = limit
    if let address { request.options.routing = .pinned(address) }
    do throws(NetOptError) {
      let response = try await client.execute(request)
      let right = Content.answer(to: id, traffic)
      let body = try await response.body.collect(upTo: right.count + 1)
      return Answer(
        id: id, fault: nil, isRight: body == right && response.headers["x-id"] == id, route: response.route,
        attempts: response.otherAttempts.count + 1)
    } catch {
      return Answer(id: id, fault: error, isRight: false, route: error.route)
    }
  }

  /// Sends the requests with these ids at once.
  private func send(_ traffic: Traffic, _ ids: Range<Int>) async throws -> [Answer] {
    try await withThrowingTaskGroup(of: Answer.self) { group in
      for id in ids { group.addTask { try await send(traffic, "\(id)") } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
  }

  /// Shuts down the client, and checks that the servers processed each request exactly once.
  private func end(processed ids: Range<Int>) async throws {
    await client.shutdown()
    let arrivals = try site.takeArrivals()
    #expect(arrivals.processed == Dictionary(uniqueKeysWithValues: ids.map { ("\($0)", 1) }))
    site.stop()
  }

  /// A request that the busy server does not take moves to the other server, which refuses the connection.
  /// Then the request returns to the busy server, and waits until this server allows streams again.
  @Test(
    "requests wait for a server that allows no streams for a moment when the other server is down",
    arguments: [100, 400])
  func noStream(_ pause: Int) async throws {
    let (busy, dead) = (site.origins[0], site.origins[1])
    try await dead.begin("refused")
    #expect(try await send(.post, "0", to: busy.address).isRight)
    try await busy.begin("max-streams-0")
    let calls = Task { try await send(.post, 1..<4) }
    // The busy server allows no streams for this time. The test does not wait for a condition here.
    try await Task.sleep(for: .milliseconds(pause))
    try await busy.end()
    for answer in try await calls.value { #expect(answer.isRight, "\(answer.id): \(answer.fault as Any)") }
    let after = try await send(.post, "4")
    #expect(after.isRight)
    #expect(after.route?.plan.candidates.first { $0.address == busy.address }?.excluded == nil)
    try await end(processed: 0..<5)
  }

  @Test(
    "a request is retried at a lone server that refuses streams for a moment",
    arguments: [Traffic.get, .post])
  func refusals(_ traffic: Traffic) async throws {
    let lone = site.origins[0]
    try await site.origins[1].begin("refused")
    #expect(try await send(.get, "0", to: lone.address).isRight)
    try await lone.begin("refused-streams")
    let call = Task { try await send(traffic, "1") }
    try await wait(for: "a refusal") { lone.peekArrivals().refused.contains("1") }
    try await lone.end()
    let answer = try await call.value
    #expect(answer.isRight, "\(answer.fault as Any)")
    try await end(processed: 0..<2)
  }

  /// The server holds one request without a response, and refuses the other 19. netopt sends these again.
  /// They then wait in libcurl for the only connection that netopt may have to this server (`perEndpoint`),
  /// and no server has processed them.
  @Test("refused requests go to the other server when theirs goes silent, a processed one does not")
  func silence() async throws {
    let silent = site.origins[0]
    let working = site.origins[1]
    try await silent.begin("held-streams")
    let calls = Task { try await send(.post, 0..<20) }
    try await wait(for: "the refusals") { silent.peekArrivals().refused.count == 19 }
    let taken = silent.peekArrivals().processed
    #expect(taken.count == 1)
    silent.freeze()
    for answer in try await calls.value {
      // A POST that the silent server has processed must not be sent to the other server.
      let isTaken = taken[answer.id] != nil
      #expect(answer.isRight == !isTaken, "\(answer.id): \(answer.fault as Any)")
      #expect((answer.fault?.code == .timeout) == isTaken)
    }
    silent.thaw()
    #expect(working.peekArrivals().processed.count == 19)
    try await end(processed: 0..<20)
  }
}
