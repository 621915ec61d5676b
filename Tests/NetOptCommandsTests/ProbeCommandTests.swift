import Glibc
import NetOpt
import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

@Suite struct ProbeCommandTests {
  /// The results for a host with two endpoints. The second endpoint is in quarantine, because its certificate
  /// is wrong.
  ///
  /// - Parameter answered: whether the first endpoint answered. If false, it refused the connection.
  private static func probe(answered: Bool = true) -> HostProbe {
    HostProbe(
      host: "api.example.com", port: 443, method: .tls,
      endpoints: [
        EndpointProbe(
          address: Samples.address("203.0.113.7"), region: "cn-north", isp: "unicom",
          rank: answered ? 1 : nil,
          rtt: answered ? .microseconds(20_140) : nil,
          samples: answered ? [.microseconds(20_400), .microseconds(19_900), .milliseconds(20)] : [],
          state: answered ? .closed : .open, chosen: answered,
          failure: answered ? nil : LegFailure(.refused, "connection refused")),
        EndpointProbe(
          address: Samples.address("2001:db8::7"), region: nil, isp: nil, rank: nil, rtt: nil, samples: [],
          state: .quarantined, chosen: false,
          failure: LegFailure(.certificateUntrusted, "the certificate's issuer is\u{1b} not trusted")),
      ])
  }

  /// A client whose list has two hosts. Each call of its `probe` returns these results.
  private static func client(_ probes: [HostProbe] = [probe()]) throws -> ScriptedClient {
    let text = #"""
      {"schema":1,"serial":1,"hosts":{
        "api.example.com":{"port":443,"endpoints":[{"ip":"203.0.113.7"}]},
        "www.example.com":{"port":443,"endpoints":[{"ip":"203.0.113.8"}]}}}
      """#
    let list = try EndpointList(Array(text.utf8), file: "list", rules: ListRules(now: Samples.now))
    return ScriptedClient(list: list, probes: probes)
  }

  @Test func printsTheRanking() async throws {
    let run = await Run(["probe"], client: try Self.client())
    #expect(run.code == 0)
    #expect(run.errors.isEmpty)
    #expect(
      run.output == """
        api.example.com:443  tls
          #  ENDPOINT           RTT  STATE        PLACE            SAMPLES ms
        * 1  203.0.113.7    20.1 ms  closed       cn-north unicom  20.4 19.9 20.0
          !  2001:db8::7          -  quarantined                   the certificate's issuer is  not trusted

        """)
  }

  @Test("the JSON has its members in the documented order")
  func json() throws {
    let text = #"""
      {"schema_version":1,"network":"via 192.0.2.1 dev eth0","hosts":[{"host":"api.example.com","port":443,\#
      "method":"tls","endpoints":[{"ip":"203.0.113.7","rank":1,"rtt_us":20140,"samples_us":[20400,19900,20000],\#
      "state":"closed","chosen":true},{"ip":"2001:db8::7","rank":null,"rtt_us":null,"samples_us":[],\#
      "state":"quarantined","chosen":false,"error":"the certificate's issuer is\u001b not trusted"}]}]}
      """#
    #expect(ProbeReport([Self.probe()]).json(network: "via 192.0.2.1 dev eth0").description == text)
  }

  @Test(
    "the JSON of a probe matches its schema",
    .enabled("\(JSONSchema.missing)") { try await JSONSchema.isInstalled() })
  func schema() async throws {
    let run = await Run(
      ["probe", "--json"], client: try Self.client([Self.probe(), Self.probe(answered: false)]))
    #expect(try await JSONSchema.faults(of: run.output, by: "probe") == "")
    let alone = ProbeReport([]).json(network: nil).description
    #expect(try await JSONSchema.faults(of: alone, by: "probe") == "")
  }

  @Test("probe passes the normalized hosts and the method to the client")
  func hostsAndMethod() async throws {
    let client = try Self.client()
    let run = await Run(["probe", "API.example.com.", "--method=tcp", "www.example.com"], client: client)
    #expect(run.code == 0)
    #expect(client.probings.map(\.hosts) == [["api.example.com", "www.example.com"]])
    #expect(client.probings.map(\.method) == [.tcp])
    #expect(run.configurations.map(\.probing.atStart) == [false])
    #expect(client.isShutDown)
  }

  @Test("probe exits with code 1 if no endpoint of a host answers")
  func noAnswer() async throws {
    let run = await Run(["probe"], client: try Self.client([Self.probe(), Self.probe(answered: false)]))
    #expect(run.code == 1)
    #expect(run.output.contains("connection refused"))
    #expect(run.errors == "netopt: no endpoint of api.example.com answered\n")
  }

  @Test(
    "probe refuses unknown hosts and methods and suggests known ones",
    arguments: [
      (["ai.example.com"], "ai.example.com is not in the list; did you mean api.example.com?"),
      (["else"], "else is not in the list; the list has api.example.com, www.example.com"),
      (["--method=htpp"], "--method takes tcp or tls or http or icmp, not \"htpp\"; did you mean http?"),
    ])
  func usageErrors(arguments: [String], message: String) async throws {
    let run = await Run(["probe"] + arguments, client: try Self.client())
    #expect(run.code == 64)
    #expect(run.errors == "netopt: \(message) (see netopt probe --help)\n")
  }

  @Test("--interval needs --watch and a positive time")
  func interval() async throws {
    let run = await Run(["probe", "--interval", "3"], client: try Self.client())
    #expect(run.code == 64)
    #expect(run.errors.contains("--interval needs --watch"))
    let short = await Run(["probe", "--watch", "--interval", "0"], client: try Self.client())
    #expect(short.code == 64)
  }

  /// Runs `probe --watch` and interrupts it with SIGINT after three rounds. Returns the output and the exit
  /// code.
  ///
  /// - Parameter terminal: whether standard output is a terminal.
  private func watch(_ arguments: [String], on terminal: Bool) async throws -> (output: String, code: Int32) {
    let client = try Self.client()
    let output = MemoryOutput(columns: terminal ? 100 : nil)
    let interruption = Interruption()
    let run = Task {
      await Run(
        ["probe", "--watch", "--interval", "0.1"] + arguments, client: client, output: output,
        interruption: interruption)
    }
    try await wait(for: "three rounds") { client.probings.count >= 3 }
    interruption.receive(SIGINT)
    let ended = await run.value
    #expect(ended.errors.isEmpty)
    #expect(client.isShutDown)
    return (output.text, ended.code)
  }

  @Test("probe --watch redraws its table on a terminal")
  func watchOnTerminal() async throws {
    let (output, code) = try await watch([], on: true)
    #expect(code == 130)
    #expect(output.hasPrefix("\u{1b}[H\u{1b}[J"))
    let rounds = output.split(separator: "\u{1b}[H\u{1b}[J")
    #expect(rounds.count >= 2)
    #expect(rounds.allSatisfy { $0.hasPrefix("api.example.com:443") && $0 == rounds[0] })
  }

  @Test("probe --watch appends its rounds when the output is no terminal")
  func watchInFile() async throws {
    let (output, code) = try await watch([], on: false)
    #expect(code == 130)
    #expect(!output.contains("\u{1b}"))
    #expect(output.split(separator: "\n\napi.example.com:443  tls\n").count >= 2)
    let (json, jsonCode) = try await watch(["--json"], on: false)
    #expect(jsonCode == 130)
    let lines = json.split(separator: "\n")
    #expect(lines.count >= 2)
    #expect(lines.allSatisfy { $0.hasPrefix("{\"schema_version\":1,\"network\":") && $0.hasSuffix("}") })
  }

  /// The list loses a host while `probe` watches it, and gets the host back.
  @Test("probe --watch skips a host while the list does not have it, and reports both changes")
  func lostHost() async throws {
    let client = try Self.client()
    let whole = try #require(client.list)
    let part = EndpointList(hosts: whole.hosts.filter { $0.key == "www.example.com" })
    let interruption = Interruption()
    let run = Task {
      await Run(
        ["probe", "--watch", "--interval", "0.1", "api.example.com", "www.example.com"], client: client,
        interruption: interruption)
    }
    /// Waits for the next round that probes exactly these hosts.
    func round(of hosts: [String]) async throws {
      let count = client.probings.count
      try await wait(for: "a round of \(hosts)") {
        client.probings.dropFirst(count).contains { $0.hosts == hosts }
      }
    }
    try await round(of: ["api.example.com", "www.example.com"])
    client.use(part)
    try await round(of: ["www.example.com"])
    client.use(EndpointList(hosts: [:]))
    client.use(whole)
    try await round(of: ["api.example.com", "www.example.com"])
    interruption.receive(SIGINT)
    let ended = await run.value
    #expect(ended.code == 130)
    let lines = ended.errors.split(separator: "\n")
    #expect(
      lines.first == "netopt: api.example.com left the list; netopt probes it again when it returns"
    )
    #expect(lines.last?.hasSuffix("is in the list again") == true)
    #expect(lines.contains("netopt: api.example.com is in the list again"))
  }

  @Test("probe without a list is a usage error")
  func noList() async {
    let run = await Run(["probe"])
    #expect(run.code == 64)
    #expect(run.errors.hasPrefix("netopt: there is no IP list"))
  }
}
