import NetOptCore
import NetOptEngine
import NetOptTestSupport
import TestTools
import Testing

/// Extreme settings that libcurl would misinterpret or silently refuse.
@Suite(.timeLimit(.minutes(1))) struct ExtremeSettingsTests {
  /// The settings that the test changes: the name of each setting, and a closure that sets it to an extreme
  /// value. The closure gets the index of the value in `ExtremeNumbers.integers` or `.durations`.
  private static let settings: [(name: String, set: @Sendable (inout CurlConfiguration, Int) -> Void)] = [
    ("connectionsPerEndpoint", { $0.connectionsPerEndpoint = ExtremeNumbers.integers[$1] }),
    ("totalConnections", { $0.totalConnections = ExtremeNumbers.integers[$1] }),
    ("idleConnections", { $0.idleConnections = ExtremeNumbers.integers[$1] }),
    ("idleAge", { $0.idleAge = ExtremeNumbers.durations[$1] }),
    ("lifetime", { $0.lifetime = ExtremeNumbers.durations[$1] }),
    ("bodyBuffer", { $0.bodyBuffer = ExtremeNumbers.integers[$1] }),
  ]

  @Test("a transport refuses an extreme setting by its name, or its requests succeed")
  func extremeSettings() async throws {
    let server = try LoopbackServer(.raw { try $0.respond(200, [:], text: "hello") })
    for (name, set) in Self.settings {
      for index in ExtremeNumbers.integers.indices {
        let bench: TransportBench
        do { bench = try await TransportBench { set(&$0, index) } } catch let error as NetOptError {
          #expect(error.code == .invalidConfiguration && error.message.hasPrefix("\(name) is "), "\(error)")
          continue
        }
        let request = try NetOptRequest(.get, "http://\(server.endpoint)/")
        let body = try await bench.execute(request, [server.endpoint.address]).body.collect(upTo: 5)
        #expect(body == Array("hello".utf8), "\(name), extreme \(index)")
        await bench.end()
      }
    }
    server.stop()
  }

  @Test(
    "a transport sends a User-Agent as one field, or refuses it for a line end or NUL",
    arguments: 1...3 as ClosedRange<UInt64>)
  func userAgents(_ seed: UInt64) async throws {
    let server = try LoopbackServer(.raw { try $0.respond(200) })
    defer { server.stop() }
    var random = SplitMix64(seed: seed)
    let pieces = ["a", "B/1", " ", "(x; y)", "é", ":", "\t", "\r", "\n", "\r\n", "\0", "\r\nX-Admin: 1"]
    var refused = 0
    for _ in 0..<40 {
      let text = "n" + (0..<random.below(4)).map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
      let bench: TransportBench
      do { bench = try await TransportBench { $0.userAgent = text } } catch let error as NetOptError {
        #expect(error.code == .invalidConfiguration && error.message.hasPrefix("userAgent is "), "\(error)")
        #expect(text.utf8.contains { $0 == 0 || $0 == 10 || $0 == 13 })
        refused += 1
        continue
      }
      _ = try await bench.execute(
        try NetOptRequest(.get, "http://\(server.endpoint)/"), [server.endpoint.address])
      let head = String(decoding: server.requests.last?.head ?? [], as: UTF8.self)
      #expect(head.contains("User-Agent: \(text)"), "\(text.debugDescription): \(head)")
      let names = head.split(separator: "\r\n").dropFirst().map { $0.prefix { $0 != ":" }.lowercased() }
      #expect(names == ["host", "accept", "user-agent", "accept-encoding"], "\(head)")
      await bench.end()
    }
    #expect((1..<40).contains(refused))
  }

  @Test(
    "lists of cipher suites that OpenSSL does not accept are errors",
    arguments: [("", 1), ("nothing", 1), ("\0", 1), ("a", 8_000_001)])
  func refusedCiphers(_ part: String, _ count: Int) async throws {
    let list = String(repeating: part, count: count)
    for change in [{ $0.cipherList = list }, { $0.cipherSuites = list + "x" }]
      as [(inout TLSSettings) -> Void]
    {
      let error = await #expect(throws: NetOptError.self) { _ = try await TransportBench { change(&$0.tls) } }
      #expect(error?.code == .invalidConfiguration && error?.message.contains("tls.cipher") == true)
    }
  }

  /// netopt uses the easy handle of the first request again for the second one. If libcurl refused the long
  /// timeout, the handle would keep the 50 ms of the first request.
  @Test(
    "a connect timeout of more than INT_MAX ms does not become the timeout of the previous request",
    arguments: [.seconds(Int32.max), .seconds(Int64.max), .nanoseconds(Int64.max)] as [Duration])
  func longConnectTimeouts(_ limit: Duration) async throws {
    let server = try LoopbackServer(.blackHole)
    let bench = try await TransportBench()
    for limit in [.milliseconds(50), limit] {
      var request = try NetOptRequest(.get, "http://\(server.endpoint)/")
      request.options.connectTimeout = limit
      request.options.timeout = .milliseconds(800)
      let sent = request
      let error = await failure { () throws(NetOptError) in
        _ = try await bench.execute(sent, [server.endpoint.address])
      }
      // The first request ends with the connect timeout, and the error says that the endpoint did not respond
      // in time. The second request ends with the time limit of the call.
      let endsAtDeadline = error?.message.contains("call's time limit") == true
      #expect(endsAtDeadline == (limit > .seconds(1)), "\(String(describing: error))")
    }
    await bench.end()
    server.stop()
  }
}
