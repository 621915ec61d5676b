import NetOpt
import NetOptCore
import NetOptTestSupport
import Testing

/// Endpoints whose connections are all in use.
@Suite(.serialized) struct BusyEndpointTests {
  /// nginx locations. `/unhurried` answers after 6 s. `/halting` sends the end of its body 3 s after the
  /// beginning. `/quick` answers at once.
  private static let directives = """
    location /unhurried { echo_sleep 6; echo "$request_method $request_uri"; }
    location /halting { echo begin; echo_flush; echo_sleep 3; echo end; }
    location /quick { return 200 "$request_method $request_uri"; }
    """

  /// Performs a request, and returns the response's body as text.
  private func text(_ request: NetOptRequest, _ client: NetOptClient) async throws -> String {
    let response = try await client.execute(request)
    return String(decoding: try await response.body.collect(upTo: 1000), as: UTF8.self)
  }

  /// The 16 requests use all connections that the client may open to the endpoint. So libcurl opens no
  /// connection for the probe with which the client checks the endpoint. The probe then says nothing about
  /// the endpoint: the client must not take the endpoint for silent.
  @Test("slow responses on all connections are not silence, and no request is sent twice")
  func slowResponses() async throws {
    let fleet = try await Fleet(2, directives: Self.directives, http2: false)
    defer { fleet.stop() }
    let client = try await fleet.client { $0.connections.perEndpoint = 16 }
    func request(_ target: String) throws -> NetOptRequest {
      var request = try fleet.request(.get, target)
      request.options.timeout = .seconds(30)
      return request
    }
    for number in 0..<20 {
      let answer = try await text(try request("/quick?q=\(number)"), client)
      #expect(answer == "GET /quick?q=\(number)")
    }
    let answers = try await withThrowingTaskGroup(of: (Int, String).self) { group in
      for number in 0..<16 {
        let request = try request("/unhurried?q=\(number)")
        group.addTask { (number, try await text(request, client)) }
      }
      return try await group.reduce(into: [Int: String]()) { $0[$1.0] = $1.1 }
    }
    for number in 0..<16 { #expect(answers[number]?.hasPrefix("GET /unhurried?q=\(number)") == true) }
    await client.shutdown()
    var arrived = 0
    try await wait(for: "the log") {
      arrived = try fleet.addresses.reduce(0) { count, address in
        try count + fleet.origin(address).accessLog().count { $0.target.hasPrefix("/unhurried") }
      }
      return arrived >= 16
    }
    #expect(arrived == 16)
  }

  /// A response that stops in the middle of its body keeps its connection. A call that waits for such a
  /// connection has sent nothing yet. So the call may go to the other endpoint, whatever its method.
  @Test(
    "a call goes to the other endpoint when stopped bodies hold all connections to the first",
    arguments: [NetOptRequest.Method.get, .post])
  func stalledQueue(_ method: NetOptRequest.Method) async throws {
    let fleet = try await Fleet(2, directives: Self.directives, http2: false)
    defer { fleet.stop() }
    let client = try await fleet.client { $0.connections.perEndpoint = 2 }
    for number in 0..<20 { _ = try await text(try fleet.request(.get, "/quick?q=\(number)"), client) }
    let first = try await client.execute(try fleet.request(.get, "/halting"))
    let victim = try #require(first.remote)
    let second = try await client.execute(try fleet.request(.get, "/halting"))
    #expect(second.remote == victim)
    for number in 0..<4 {
      let response = try await client.execute(try fleet.request(method, "/quick?q=\(number)"))
      #expect(response.remote != victim)
      let leg = response.route.legs.first { $0.address == victim.address }
      #expect(leg?.failure?.message.contains("all connections to") == true)
      let answer = String(decoding: try await response.body.collect(upTo: 100), as: UTF8.self)
      #expect(answer == "\(method.rawValue) /quick?q=\(number)")
    }
    for response in [first, second] {
      #expect(try await response.body.collect(upTo: 100) == Array("begin\nend\n".utf8))
    }
    // The endpoint is not excluded.
    let status = try await client.execute(try fleet.request(.get, "/quick?q=last"))
    #expect(status.route.plan.candidates.allSatisfy { $0.excluded == nil })
    _ = try await status.body.collect(upTo: 100)
    await client.shutdown()
  }

  /// A pinned request may not go to another endpoint. It waits for its endpoint while the endpoint is paused,
  /// even if all connections to the endpoint are in use.
  @Test(
    "pinned POSTs wait for a paused endpoint and all get their responses",
    arguments: [RequestOptions.Version.http1, .http2])
  func pinnedRequests(_ version: RequestOptions.Version) async throws {
    let fleet = try await Fleet(2, directives: Self.directives)
    defer { fleet.stop() }
    let client = try await fleet.client { $0.connections.perEndpoint = 2 }
    let victim = fleet.addresses[0]
    let origin = try fleet.origin(victim)
    func request(_ method: NetOptRequest.Method, _ number: Int) throws -> NetOptRequest {
      var request = try fleet.request(method, "/quick?q=\(number)")
      request.options.version = version
      request.options.timeout = .seconds(30)
      request.options.routing = .pinned(victim)
      return request
    }
    for number in 0..<20 { _ = try await text(try request(.get, number), client) }
    origin.freeze()
    defer { origin.thaw() }
    let answers = try await withThrowingTaskGroup(of: (Int, String).self) { group in
      for number in 0..<12 {
        let request = try request(.post, number)
        group.addTask { (number, try await text(request, client)) }
      }
      // The endpoint stays paused for 4 s. In this time the client decides that the endpoint is silent.
      group.addTask {
        try await Task.sleep(for: .seconds(4))
        origin.thaw()
        return (-1, "")
      }
      return try await group.reduce(into: [Int: String]()) { $0[$1.0] = $1.1 }
    }
    for number in 0..<12 { #expect(answers[number] == "POST /quick?q=\(number)") }
    await client.shutdown()
  }

  @Test("a call that times out behind other calls reports what the connections were busy with")
  func messageBehindOthers() async throws {
    let server = try LoopbackServer(.silent)
    defer { server.stop() }
    var configuration = ClientConfiguration()
    configuration.list = .none
    configuration.proxy = .none
    configuration.rankingHistory = .none
    configuration.connections.perEndpoint = 1
    let client = try NetOptClient(configuration)
    var request = try NetOptRequest(.get, "http://\(server.endpoint)/")
    request.options.timeout = .milliseconds(500)
    request.options.maxAttempts = 1
    let asked = request
    let messages = await withTaskGroup(of: String.self) { group in
      for _ in 0..<12 {
        group.addTask {
          do throws(NetOptError) { return "status \(try await client.execute(asked).status)" } catch {
            return error.message
          }
        }
      }
      return await group.reduce(into: [String]()) { $0.append($1) }
    }
    // One call waits for its response on the only connection, and the other calls wait for the connection.
    // When that call times out, its connection closes. Another call may then get a new connection for a short
    // time before its own deadline, so more than one call may end as unanswered.
    let unanswered = messages.count { $0.hasSuffix("\(server.endpoint) had not answered") }
    let behind = messages.count { $0.contains("busy with requests that it had not answered") }
    #expect(unanswered >= 1 && behind >= 1 && unanswered + behind == messages.count, "\(messages)")
    await client.shutdown()
  }
}
