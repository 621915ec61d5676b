import NetOptCore
import NetOptCurl
import NetOptEventLoop
import NetOptTestSupport
import Testing

/// Numbers that libcurl takes for something else, or might refuse without a word.
@Suite(.timeLimit(.minutes(1))) struct ExtremeSettingsTests {
  private static let settings: [(name: String, set: @Sendable (inout CurlConfiguration, Int) -> Void)] = [
    ("connectionsPerEndpoint", { $0.connectionsPerEndpoint = ExtremeNumbers.integers[$1] }),
    ("totalConnections", { $0.totalConnections = ExtremeNumbers.integers[$1] }),
    ("idleConnections", { $0.idleConnections = ExtremeNumbers.integers[$1] }),
    ("idleAge", { $0.idleAge = ExtremeNumbers.durations[$1] }),
    ("lifetime", { $0.lifetime = ExtremeNumbers.durations[$1] }),
    ("bodyBuffer", { $0.bodyBuffer = ExtremeNumbers.integers[$1] }),
  ]

  @Test("a transport with an extreme setting is refused by its name, or answers")
  func extremeSettings() async throws {
    let server = try LoopbackServer(.raw { try $0.respond(200, [:], text: "hello") })
    for (name, set) in Self.settings {
      for index in ExtremeNumbers.integers.indices {
        let bench: TransportBench
        do { bench = try await TransportBench { set(&$0, index) } } catch let error as NetOptError {
          #expect(error.code == .invalidConfiguration && error.message.hasPrefix("\(name) is "), "\(error)")
          continue
        }
        let request = try HTTPRequest(.get, "http://\(server.endpoint)/")
        let body = try await bench.execute(request, [server.endpoint.address]).body.collect(upTo: 5)
        #expect(body == Array("hello".utf8), "\(name), extreme \(index)")
        await bench.end()
      }
    }
    server.stop()
  }

  @Test("a setting that libcurl refuses is an error, and the handle is freed once")
  func refusedSetting() async throws {
    // libcurl takes strings of at most 8,000,000 bytes.
    let file = String(repeating: "a", count: 8_000_001)
    let error = await #expect(throws: NetOptError.self) { _ = try await TransportBench { $0.caFile = file } }
    #expect(error?.code == .invalidConfiguration)
  }

  @Test(
    "a connect timeout of more milliseconds than an int holds is a long one, not that of the request before",
    arguments: [.seconds(Int32.max), .seconds(Int64.max), .nanoseconds(Int64.max)] as [Duration])
  func longConnectTimeouts(_ limit: Duration) async throws {
    let server = try LoopbackServer(.blackHole)
    let bench = try await TransportBench()
    for limit in [.milliseconds(50), limit] {
      var request = try HTTPRequest(.get, "http://\(server.endpoint)/")
      request.options.connectTimeout = limit
      request.options.timeout = .milliseconds(800)
      let sent = request
      let error = await failure { () throws(NetOptError) in
        _ = try await bench.execute(sent, [server.endpoint.address])
      }
      // Otherwise it is the endpoint that did not answer in time.
      let endsAtDeadline = error?.message.contains("call's limit") == true
      #expect(endsAtDeadline == (limit > .seconds(1)), "\(String(describing: error))")
    }
    await bench.end()
    server.stop()
  }
}
