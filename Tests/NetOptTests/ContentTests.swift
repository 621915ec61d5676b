import FoundationEssentials
import NetOpt
import NetOptTestSupport
import TestTools
import Testing

/// Sends values and reads values over a connection to a loopback server.
@Suite struct ContentTests {
  private struct Order: Codable, Equatable {
    var item: Int
    var note: String
  }

  /// A server that returns the body of each request with its media type. For `/status/404` it adds that
  /// status; `/redirect` leads to `/` with a 307.
  private static func server() throws -> LoopbackServer {
    try LoopbackServer(
      .raw { exchange in
        let body = try exchange.readBody()
        let type = exchange.request.fields["Content-Type"] ?? "none"
        let target = exchange.request.target
        if target == "/redirect" { return try exchange.respond(307, ["Location": "/"]) }
        try exchange.respond(
          target == "/missing" ? 404 : 200, ["Content-Type": type], body: body)
      })
  }

  private static func client() throws -> NetOptClient {
    var configuration = ClientConfiguration()
    configuration.proxy = .none
    return try NetOptClient(configuration)
  }

  @Test("a value goes out as JSON and comes back, also after a redirect, and the caller's type stays")
  func values() async throws {
    let server = try Self.server()
    defer { server.stop() }
    let client = try Self.client()
    let order = Order(item: 7, note: "ä \"quoted\"\n")
    for path in ["/", "/redirect"] {
      let request = try NetOptRequest(.post, "http://\(server.endpoint)\(path)", body: .json(order))
      let response = try await client.execute(request).requireSuccess()
      #expect(response.headers["Content-Type"] == "application/json")
      #expect(try await response.decode(Order.self) == order)
    }
    var request = try NetOptRequest(.patch, "http://\(server.endpoint)/", body: .json(order))
    request.headers["content-type"] = "application/merge-patch+json"
    #expect(try await client.execute(request).headers["Content-Type"] == "application/merge-patch+json")
    request = try NetOptRequest(.post, "http://\(server.endpoint)/", body: .form(["a": "1 2"]))
    let response = try await client.execute(request)
    #expect(response.headers["Content-Type"] == "application/x-www-form-urlencoded")
    #expect(try await response.text() == "a=1+2")
    // A text has no type that the client could know.
    request.body = .text("x")
    #expect(try await client.execute(request).headers["Content-Type"] == "none")
    request.body.contentType = "text/csv"
    #expect(try await client.execute(request).headers["Content-Type"] == "text/csv")
    request.body.contentType = "text/csv\r\nX-Injected: 1"
    let invalid = request
    let refused = await #expect(throws: NetOptError.self) { try await client.execute(invalid) }
    #expect(refused?.code == .invalidRequest)
    await client.shutdown()
  }

  @Test("the error of a 404 has its status and body, and the connection serves the next request")
  func failure() async throws {
    let server = try Self.server()
    defer { server.stop() }
    let client = try Self.client()
    let missing = try NetOptRequest(.post, "http://\(server.endpoint)/missing", body: .text("no such order"))
    let error = await #expect(throws: NetOptError.self) {
      try await client.execute(missing).requireSuccess().decode(Order.self)
    }
    #expect(error?.status == 404)
    #expect(error?.responseBody == Array("no such order".utf8))
    #expect(error?.endpoint == server.endpoint)
    #expect(error?.route?.winner != nil)
    let undecoded = #expect(throws: NetOptError.self) { try error?.decode(Order.self) }
    #expect(undecoded?.code == .decodeFailed)
    #expect(undecoded?.message.contains("the 13 bytes that the error keeps") == true)
    let next = try await client.execute(NetOptRequest(.get, "http://\(server.endpoint)/"))
    #expect(next.reused)
    await client.shutdown()
  }

  @Test("the body of an error is decoded; an error without a body says so")
  func errorBodies() async throws {
    let order = Order(item: 1, note: "sold out")
    let transport = StubTransport(everyHost: try .respond(409, json: order))
    let client = try NetOptClient(transport: transport)
    let error = await #expect(throws: NetOptError.self) {
      try await client.execute(NetOptRequest(.get, "https://a.test/")).requireSuccess()
    }
    #expect(try error?.decode(Order.self) == order)
    transport.set(everyHost: .refuse)
    let refused = await #expect(throws: NetOptError.self) {
      try await client.execute(NetOptRequest(.get, "https://b.test/"))
    }
    let undecoded = #expect(throws: NetOptError.self) { try refused?.decode(Order.self) }
    #expect(undecoded?.code == .decodeFailed && undecoded?.message.contains("no response body") == true)
    #expect(transport.opened.count == 2 && transport.received.count == 1)
    await client.shutdown()
  }

  @Test("the stub's texts and values have the media type of real ones")
  func stubContent() async throws {
    let client = try NetOptClient(
      transport: StubTransport(
        everyHost: .answer { request, _ in
          switch request.url.path {
          case "/text": .response(StubResponse(text: "ä"))
          case "/own":
            .response((try? StubResponse(fields: ["content-type": "a/b"], json: [1])) ?? StubResponse(500))
          default: .response((try? StubResponse(201, json: ["b": 1, "a": 2])) ?? StubResponse(500))
          }
        }))
    let get = { (path: String) async throws -> (Int, String?, String) in
      let response = try await client.execute(NetOptRequest(.get, "https://a.test\(path)"))
      return (response.status, response.headers["Content-Type"], try await response.text())
    }
    #expect(try await get("/text") == (200, nil, "ä"))
    #expect(try await get("/own") == (200, "a/b", "[1]"))
    #expect(try await get("/") == (201, "application/json", #"{"a":2,"b":1}"#))
    await client.shutdown()
  }
}
