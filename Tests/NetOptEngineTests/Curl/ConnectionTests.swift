import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@Suite struct ConnectionTests {
  @Test("Host and SNI have the URL's host name, and the response describes its connection")
  func hostAndSNI() async throws {
    let origin = try await NginxOrigin.start(for: ["api.test"], on: IPAddress.freshLoopback(1))
    defer { origin.stop() }
    let bench = try await TransportBench()
    let request = try NetOptRequest(.get, "https://api.test:\(origin.port)/echo?a=b%20c&d=../e")
    let response = try await bench.execute(request, origin.endpoints.map(\.address))
    _ = try await response.body.collect(upTo: 10_000)
    let entry = try #require(try await origin.waitForLog(1).first)
    #expect(entry.serverName == "api.test")
    #expect(entry.host == "api.test:\(origin.port)")
    #expect(entry.version == "HTTP/2.0")
    #expect(entry.target == "/echo?a=b%20c&d=../e")
    #expect(response.status == 200)
    #expect(response.version == .http2)
    #expect(response.remote == origin.endpoints[0])
    let tls = try #require(response.tls)
    #expect(tls.verified && tls.version == "TLSv1.3" && tls.subject == "CN = api.test")
    // `notAfter` is in seconds since 1970. This number is 2026-01-01T00:00:00Z.
    #expect(try #require(tls.notAfter) > 1_767_225_600)
    // On loopback a round trip takes less than a second, and nothing is lost.
    let socket = try #require(response.socket)
    #expect(socket.roundTrip > .zero && socket.roundTrip < .seconds(1) && socket.retransmits == 0)
    #expect(!response.reused)
    #expect(response.attempts == 1)
    #expect(response.head.first("x-origin") == origin.endpoints[0].address.description)
    await bench.end()
  }

  @Test("the next request reuses the connection over HTTP/2 and HTTP/1.1")
  func reuse() async throws {
    let origin = try await NginxOrigin.start(for: ["api.test"], on: IPAddress.freshLoopback(1))
    defer { origin.stop() }
    for version in [RequestOptions.Version.automatic, .http1] {
      let bench = try await TransportBench()
      for round in 0..<3 {
        var request = try NetOptRequest(.get, "https://api.test:\(origin.port)/")
        request.options.version = version
        let response = try await bench.execute(request, origin.endpoints.map(\.address))
        #expect(try await response.body.collect(upTo: 100) == Array("hello\n".utf8))
        #expect(response.reused == (round > 0))
        #expect(response.route.winner?.reused == (round > 0))
        #expect(response.timings.connect == .zero || round == 0)
        #expect(response.version == (version == .http1 ? .http1_1 : .http2))
      }
      await bench.end()
      let counts = try #require(bench.transport.counts)
      #expect(counts.fullHandshakes == 1 && counts.resumedHandshakes == 0)
      #expect(counts.connections == 1 && counts.openConnections == 0 && counts.receivedBytes == 18)
    }
    #expect(Set(try await origin.waitForLog(6).map(\.connection)).count == 2)
  }

  @Test("the counts of connections and bytes go on when the network changes")
  func countsAcrossNetworks() async throws {
    let server = try LoopbackServer(.raw { try $0.respond(200, text: "hello") })
    defer { server.stop() }
    let bench = try await TransportBench()
    for _ in 0..<3 {
      let request = try NetOptRequest(.get, "http://\(server.endpoint)/")
      let response = try await bench.execute(request, [server.endpoint.address])
      _ = try await response.body.collect(upTo: 100)
      bench.transport.networkChanged()
    }
    let counts = try #require(bench.transport.counts)
    #expect(counts.connections == 3 && server.connections == 3)
    #expect(counts.receivedBytes == 15 && counts.fullHandshakes == 0)
    await bench.end()
    #expect(bench.transport.counts?.openConnections == 0)
  }

  @Test("each request with connection .fresh opens a connection without TLS resumption")
  func freshConnections() async throws {
    let origin = try await NginxOrigin.start(for: ["api.test"], on: IPAddress.freshLoopback(1))
    defer { origin.stop() }
    let bench = try await TransportBench()
    var request = try NetOptRequest(.get, "https://api.test:\(origin.port)/")
    request.options.connection = .fresh
    for _ in 0..<3 {
      let response = try await bench.execute(request, origin.endpoints.map(\.address))
      _ = try await response.body.collect(upTo: 100)
      #expect(!response.reused)
      #expect(response.timings.tls > .zero)
    }
    let log = try await origin.waitForLog(3)
    #expect(Set(log.map(\.connection)).count == 3)
    #expect(log.allSatisfy { !$0.sessionReused })
    #expect(bench.transport.counts?.fullHandshakes == 3)
    await bench.end()
  }

  @Test func speaksPlainHTTP() async throws {
    let address = IPAddress.freshLoopback(1)[0]
    let origin = try await NginxOrigin.start([NginxOrigin.Listener(address, .none)])
    defer { origin.stop() }
    let bench = try await TransportBench()
    let response = try await bench.execute(
      try NetOptRequest(.get, "http://api.test:\(origin.port)/"), [address])
    #expect(try await response.body.collect(upTo: 100) == Array("hello\n".utf8))
    #expect(response.version == .http1_1)
    #expect(response.tls == nil)
    #expect(response.timings.tls == .zero)
    await bench.end()
  }

  @Test("a request for HTTP/2 only fails if the server does not offer HTTP/2")
  func onlyHTTP2() async throws {
    var settings = NginxSettings()
    settings.http2 = false
    let origin = try await NginxOrigin.start(
      for: ["api.test"], on: IPAddress.freshLoopback(1), settings: settings)
    defer { origin.stop() }
    let bench = try await TransportBench()
    var request = try NetOptRequest(.get, "https://api.test:\(origin.port)/")
    request.options.version = .http2
    let error = await failure { () throws(NetOptError) in
      _ = try await bench.execute(request, origin.endpoints.map(\.address))
    }
    #expect(error?.code == .unsupported)
    await bench.end()
  }

  @Test("the timings include the body and add up to no more than the measured time")
  func timingsAddUp() async throws {
    let origin = try await NginxOrigin.start(for: ["api.test"], on: IPAddress.freshLoopback(1))
    defer { origin.stop() }
    let bench = try await TransportBench()
    let request = try NetOptRequest(.get, "https://api.test:\(origin.port)/slow-body?s=0.2")
    let before = bench.loop.now()
    let response = try await bench.execute(request, origin.endpoints.map(\.address))
    // The head has arrived. The origin sends the second half of the body 200 ms after the first half.
    #expect(response.timings.transfer < .milliseconds(200))
    #expect(try await response.body.collect(upTo: 100) == Array("first\nlast\n".utf8))
    let whole = bench.loop.now() - before
    let timings = response.timings
    #expect(timings.transfer >= .milliseconds(190))
    #expect(timings.total <= whole)
    #expect(timings.connect > .zero && timings.tls > .zero && timings.wait > .zero)
    #expect(timings.queue >= .zero && timings.send >= .zero && timings.dns == .zero)
    let leg = try #require(response.route.winner)
    #expect(leg.started <= (leg.connected ?? .zero))
    #expect((leg.connected ?? .zero) <= (leg.secured ?? .zero))
    await bench.end()
  }
}
