import NetOpt
import NetOptCore
import NetOptTestSupport
import Testing

/// Tunnels that libcurl opens by itself, to send a request once more.
@Suite struct TunnelTests {
  @Test(
    "a proxy whose second answer to CONNECT has no end ends the call, takes no memory and holds up no other call"
  )
  func secondTunnel() async throws {
    let server = try await HostileServer.shared.value
    var configuration = server.clientConfiguration
    configuration.proxy = .url("https://\(server.secure)")
    let client = try NetOptClient(configuration)
    func request(_ target: String, of scenario: String, _ timeout: Duration) throws -> HTTPRequest {
      var request = try HTTPRequest(
        .get, "https://\(scenario)--second-tunnel.hostile.test:\(server.secure.port)\(target)")
      request.options.timeout = timeout
      request.options.maxAttempts = 1
      return request
    }
    let name = "second-tunnel-without-end"
    let first = await Outcome(of: try request("/right?q=1", of: name, .seconds(20)), by: client)
    #expect(first.fault(.answers(.usual), for: 1) == nil)
    let peak = PeakMemory()
    let lost = try request("/broken?q=2", of: name, .seconds(20))
    let call = Task { await Outcome(of: lost, by: client) }
    let other = await Outcome(of: try request("/right?q=3", of: "right", .seconds(20)), by: client)
    #expect(other.fault(.answers(.usual), for: 3) == nil)
    let outcome = await call.value
    #expect(outcome.fault(.fails([.proxyFailed]), for: 2) == nil)
    #expect(outcome.error?.message.contains("64 KiB") == true)
    #expect(outcome.time < .seconds(10))
    #expect(await peak.end() < 32 << 20)
    await client.shutdown()
  }
}
