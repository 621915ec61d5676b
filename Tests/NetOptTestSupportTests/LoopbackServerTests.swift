import NetOptCore
import NetOptTestSupport
import Testing

@Suite struct LoopbackServerTests {
  private func url(_ server: LoopbackServer, _ path: String = "/") -> String {
    "http://\(server.endpoint)\(path)"
  }

  // The statuses are exit codes of curl(1). 18: the body was cut off. 28: timed out. 35: the TLS handshake
  // failed. 52: no response. 56: an error while receiving, such as a reset.

  @Test("a silent server reads requests and never answers") func silent() async throws {
    let server = try LoopbackServer(.silent)
    defer { server.stop() }
    #expect(try await Curl.run(["-m", "0.2", url(server)]).status == 28)
    #expect(server.connections == 1)
    try await wait(for: "the request") { server.received[0].starts(with: Array("GET / HTTP/1.1\r\n".utf8)) }
    try await wait(for: "the connection's end") { server.openConnections == 0 }
  }

  @Test("a black-hole server never completes a connection") func blackHole() async throws {
    let server = try LoopbackServer(.blackHole, on: IPAddress.freshLoopback(1)[0])
    defer { server.stop() }
    let curl = try await Curl.run(["--connect-timeout", "0.3", "-w", "%{time_connect}", url(server)])
    #expect(curl.status == 28)
    #expect(curl.output.contains("0.000000"))
    #expect(server.connections == 0)
  }

  @Test("a closing server ends connections in order") func closing() async throws {
    let server = try LoopbackServer(.closing)
    defer { server.stop() }
    #expect(try await Curl.run([url(server)]).status == 52)
    #expect(server.connections == 1)
  }

  @Test("a resetting server resets connections") func resetting() async throws {
    let server = try LoopbackServer(.resetting)
    defer { server.stop() }
    let curl = try await Curl.run([url(server)])
    #expect(curl.status == 56)
    #expect(curl.output.contains("reset by peer"))
  }

  @Test("a greeting server breaks the TLS handshake") func greeting() async throws {
    let server = try LoopbackServer(.greeting(Array("220 mail.example ESMTP\r\n".utf8)))
    defer { server.stop() }
    #expect(try await Curl.run(["-k", "https://\(server.endpoint)/"]).status == 35)
  }

  @Test("a raw server answers several requests of a connection and records them")
  func rawRequests() async throws {
    let server = try LoopbackServer(
      .raw { exchange in
        let body = try exchange.readBody()
        try exchange.respond(200, ["X-Number": "\(exchange.request.number)"], body: body.reversed())
      })
    defer { server.stop() }
    let curl = try await Curl.run(["-d", "abc", url(server, "/1?x"), url(server, "/2")])
    #expect(curl.output == "cbacba")
    #expect(server.connections == 1)
    #expect(server.requests.map(\.target) == ["/1?x", "/2"])
    #expect(server.requests.map(\.number) == [1, 2])
    #expect(server.requests[0].method == .post)
    #expect(server.requests[0].fields["content-length"] == "3")
    #expect(server.received[0].starts(with: server.requests[0].head + Array("abc".utf8)))
  }

  @Test("a raw server reads a chunked body") func rawChunks() async throws {
    let server = try LoopbackServer(.raw { try $0.respond(200, body: try $0.readBody()) })
    defer { server.stop() }
    let curl = try await Curl.run(["-H", "Transfer-Encoding: chunked", "-d", "chunked body", url(server)])
    #expect(curl.output == "chunked body")
  }

  @Test("a raw server skips a body that its handler does not read") func unreadBody() async throws {
    let server = try LoopbackServer(.raw { try $0.respond(200, text: $0.request.target) })
    defer { server.stop() }
    #expect(try await Curl.run(["-d", "abc", url(server, "/1"), url(server, "/2")]).output == "/1/2")
    #expect(server.connections == 1)
  }

  @Test("a raw server can cut or reset a response body") func rawCutOrReset() async throws {
    let server = try LoopbackServer(
      .raw { exchange in
        try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
        if exchange.request.target == "/reset" { exchange.reset() } else { exchange.close() }
      })
    defer { server.stop() }
    #expect(try await Curl.run([url(server, "/cut")]).status == 18)
    #expect([18, 56].contains(try await Curl.run([url(server, "/reset")]).status))
  }

  @Test("stop ends handlers that wait") func stopEndsHandlers() async throws {
    let server = try LoopbackServer(.raw { try $0.wait(.seconds(600)) })
    async let curl = Curl.run([url(server)])
    try await wait(for: "the request") { server.requests.count == 1 }
    server.stop()
    #expect(try await curl.status == 52)
    #expect(server.openConnections == 0)
  }

  @Test("stop frees the port at once") func stopFreesPort() async throws {
    let address = IPAddress.freshLoopback(1)[0]
    let server = try LoopbackServer(.silent, on: address)
    let port = server.endpoint.port
    server.stop()
    #expect(throws: Never.self) { try LoopbackServer(.silent, on: address, port: port).stop() }
  }

  @Test("the error for a port in use names the endpoint") func portInUse() throws {
    let server = try LoopbackServer(.silent)
    defer { server.stop() }
    let error = try #require(
      #expect(throws: TestSupportError.self) { try LoopbackServer(.silent, port: server.endpoint.port) })
    #expect(error.description.contains("\(server.endpoint)"))
  }
}
