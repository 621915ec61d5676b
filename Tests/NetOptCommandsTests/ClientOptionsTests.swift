import NetOpt
import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

@Suite struct ClientOptionsTests {
  /// The path of an empty file, which stands for a file of certificate authorities.
  private let authorities: String

  init() throws {
    authorities = try TemporaryDirectory.make("authorities") + "/ca.pem"
    try Files.write("", to: authorities)
  }

  /// The configuration of the client that `netopt get` creates with these arguments and variables.
  private func configuration(
    _ arguments: [String], _ environment: [String: String] = [:]
  ) async throws -> ClientConfiguration {
    let run = await Run(["get", "http://a.example/"] + arguments, environment: environment)
    #expect(run.errors.isEmpty)
    return try #require(run.configurations.first)
  }

  /// The file name of the configured list, or "built in" for the list in the library.
  private func file(of configuration: ClientConfiguration) -> String? {
    switch configuration.list {
    case .file(let name): name
    case .builtIn: "built in"
    default: nil
    }
  }

  @Test("get without options uses the defaults of the library, but does not refresh the list")
  func defaults() async throws {
    let configuration = try await configuration([])
    #expect(file(of: configuration) == "built in")
    #expect(!configuration.allowPrivateAddresses)
    #expect(configuration.probing.atStart && !configuration.probing.includesUnusedHosts)
    // `get` ends before a refresh could fetch a newer list.
    #expect(!configuration.listUpdates.refresh)
    #expect(configuration.dns.servers.isEmpty)
    #expect(configuration.tls.caFile == nil)
    #expect(configuration.routing == RoutingConfiguration())
  }

  @Test("options set the list, the name servers and the authorities, and --no-direct turns probes off")
  func options() async throws {
    let configuration = try await configuration([
      "--iplist", "l.json", "--allow-private", "--dns-servers", "127.0.0.1:5353,::1,[::1]:53,192.0.2.1",
      "--cacert",
      authorities, "--no-direct",
    ])
    #expect(file(of: configuration) == "l.json")
    #expect(configuration.allowPrivateAddresses)
    #expect(!configuration.probing.atStart)
    #expect(configuration.dns.servers == ["127.0.0.1:5353", "::1", "[::1]:53", "192.0.2.1"])
    #expect(configuration.tls.caFile == authorities)
  }

  @Test(
    "--policy sets the policy and overrides NETOPT_POLICY",
    arguments: [
      (["--policy", "balanced"], [:], SelectionPolicy.balanced), ([], ["NETOPT_POLICY": "pinned"], .pinned),
      (["--policy", "fastest"], ["NETOPT_POLICY": "pinned"], .fastest), ([], ["NETOPT_POLICY": ""], .fastest),
    ])
  func policy(
    _ arguments: [String], _ environment: [String: String], _ policy: SelectionPolicy
  ) async throws {
    #expect(try await configuration(arguments, environment).routing.policy == policy)
  }

  @Test("get refuses an unknown policy and lists the known ones")
  func unknownPolicy() async {
    for run in [
      await Run(["get", "http://a.example/", "--policy", "slowest"]),
      await Run(["get", "http://a.example/"], environment: ["NETOPT_POLICY": "slowest"]),
    ] {
      #expect(run.errors.contains("takes one of fastest, balanced, pinned, not \"slowest\""))
    }
  }

  @Test("variables set the client, and options override them")
  func environment() async throws {
    let environment = [
      "NETOPT_IPLIST": "e.json", "NETOPT_REGION": "cn-north", "NETOPT_ISP": "unicom",
      "NETOPT_DNS_SERVERS": "127.0.0.1:1", "NETOPT_CACERT": authorities,
    ]
    let fromEnvironment = try await configuration([], environment)
    #expect(file(of: fromEnvironment) == "e.json")
    #expect(fromEnvironment.routing.region == "cn-north")
    #expect(fromEnvironment.routing.isp == "unicom")
    #expect(fromEnvironment.dns.servers == ["127.0.0.1:1"])
    #expect(fromEnvironment.tls.caFile == authorities)

    let overridden = try await configuration(["--iplist=l.json", "--cacert=/dev/null"], environment)
    #expect(file(of: overridden) == "l.json")
    #expect(overridden.tls.caFile == "/dev/null")
  }

  @Test(
    "--dns-servers refuses a text that is no address with an optional port",
    arguments: [
      "", "1.2.3.4,", "a", "1.2.3.4:0", "1.2.3.4:65536", "1.2.3.4:x", "[1.2.3.4]:53", "[::1]", "[::1",
    ])
  func invalidNameServer(text: String) async {
    let run = await Run(["get", "http://a.example/", "--dns-servers", text])
    #expect(run.code == 64)
    #expect(run.errors.hasPrefix("netopt: --dns-servers takes addresses"))
  }

  @Test("the message about an invalid variable names the variable")
  func variableInMessage() async {
    let run = await Run(["get", "http://a.example/"], environment: ["NETOPT_DNS_SERVERS": "x"])
    #expect(run.code == 64)
    #expect(run.errors.hasPrefix("netopt: NETOPT_DNS_SERVERS takes addresses"))
  }

  @Test("an unreadable --cacert file is invalid input, and get creates no client")
  func unreadableAuthorities() async {
    let run = await Run(["get", "http://a.example/", "--cacert", "/nowhere/ca.pem"])
    #expect(run.code == 65)
    #expect(run.errors.hasPrefix("netopt: cannot read /nowhere/ca.pem: No such file or directory"))
    #expect(run.configurations.isEmpty)
  }
}
