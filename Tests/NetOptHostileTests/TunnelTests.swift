import NetOpt
import NetOptCore
import NetOptEngine
import NetOptTestSupport
import TestTools
import Testing

/// Tunnels that libcurl opens by itself to repeat a request, and tunnels over a TLS connection to the proxy
/// that misbehaves.
@Suite struct TunnelTests {
  static let cases: [HostileCase] = .answers(["tls12-proxy-in-a-renegotiation"])

  @Test(
    "an endless response to a second CONNECT fails only its own call, soon and without much memory"
  )
  func secondTunnel() async throws {
    let server = try await HostileServer.shared.value
    var configuration = server.clientConfiguration
    configuration.proxy = .url("https://\(server.secure)")
    let client = try NetOptClient(configuration)
    func request(_ target: String, of scenario: String, _ timeout: Duration) throws -> NetOptRequest {
      var request = try NetOptRequest(
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
    // Newer releases of libcurl have a lower limit of their own.
    if CurlLibrary.stopsAtLongHeads { #expect(outcome.error?.message.contains("64 KiB") == true) }
    #expect(outcome.time < .seconds(10))
    #expect(await peak.end() < 32 << 20)
    await client.shutdown()
  }

  @Test("origins do not share the connections to a proxy for plain HTTP")
  func sharedProxy() async throws {
    let server = try await HostileServer.shared.value
    var configuration = server.clientConfiguration
    configuration.proxy = .url("http://\(server.plain)")
    let client = try NetOptClient(configuration)
    var hosts: [String: Set<String>] = [:]
    for question in 1...12 {
      let host = "right--\(["a", "b", "c"][question % 3])-of-a-proxy.hostile.test"
      let request = try NetOptRequest(.get, "http://\(host)/right?q=\(question)")
      let outcome = await Outcome(of: request, by: client)
      #expect(outcome.fault(.answers(.usual), for: question) == nil)
      hosts[try #require(outcome.head?.first("X-Serial")), default: []].insert(host)
    }
    #expect(hosts.values.allSatisfy { $0.count == 1 }, "\(hosts)")
    await client.shutdown()
  }

  /// What a client that sends its request all the same makes of the forged answer depends on whether it reads or writes first when that comes: the
  /// answer to the request, or an error, behind which it asks once more. So it is done again and again.
  @Test(
    "a response forged during the proxy's renegotiation is not taken for the next request",
    arguments: 1...8)
  func renegotiation(_ number: Int) async throws {
    let server = try await HostileServer.shared.value
    let scenario = Self.cases[0].name
    let host = "\(scenario)--\(number).hostile.test"
    var configuration = server.clientConfiguration
    configuration.proxy = .url("https://\(scenario)--of-\(number).proxy.localhost:\(server.secure.port)")
    let client = try NetOptClient(configuration)
    func request(_ target: String) throws -> NetOptRequest {
      var request = try NetOptRequest(.get, "https://\(host):\(server.secure.port)\(target)")
      request.options.timeout = .seconds(20)
      request.options.maxAttempts = 1
      return request
    }
    let first = await Outcome(of: try request("/broken?q=1"), by: client)
    #expect(first.fault(Self.answers(on: 1), for: 1) == nil)
    let next = try request("/right?q=2")
    let call = Task { await Outcome(of: next, by: client) }
    #expect(try await server.release(host) == 1)
    let fault = await call.value.fault(Self.answers(on: 2), for: 2)
    #expect(fault == nil)
    #expect(server.newFaults().isEmpty)
    await client.shutdown()
  }

  /// The right response, over the host's connection with this number.
  private static func answers(on connection: Int) -> HostileCase.Verdict {
    .answers(ExpectedAnswer(fields: ["X-Connection": "\(connection)"]))
  }
}
