import FoundationEssentials
import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

/// A network namespace without routes, in which unshare(1) runs a program.
private enum RoutelessNamespace {
  static let arguments = ["--user", "--map-root-user", "--net"]

  /// Whether this process may make such a namespace.
  static var isAvailable: Bool {
    get async {
      let child = try? ChildProcess(
        "/usr/bin/env", ["unshare"] + arguments + ["true"], in: TemporaryDirectory.make("unshare"))
      guard let child else { return false }
      try? await wait(for: "unshare to end") { child.exitStatus() != nil }
      return child.exitStatus() == 0
    }
  }
}

/// Tests that commands contact only the addresses that their arguments ask for. The program runs in a network
/// namespace of its own that has no routes, so nothing leaves this machine, and strace(1) shows each address
/// that the program tries.
@Suite(.enabled("unshare(1) may not make a network namespace here") { await RoutelessNamespace.isAvailable })
struct ContactedAddressesTests {
  /// The addresses to which netopt connects UDP sockets to learn this machine's own address. This sends
  /// nothing (`SourceAddress`).
  private static let neverSent: Set = ["198.41.0.4", "2001:503:ba3e::2:30"]
  private static let nameServer = "192.0.2.53"

  /// A list: the addresses of each host.
  private typealias Hosts = [String: [String]]

  private let directory: String

  init() throws { directory = try TemporaryDirectory.make("contacted") }

  /// Writes a list file, and returns its path.
  private func list(_ hosts: Hosts) throws -> String {
    let path = "\(directory)/list.json"
    let entries = hosts.map { host, addresses in
      let endpoints = addresses.map { "{\"ip\":\"\($0)\"}" }.joined(separator: ",")
      return "\"\(host)\":{\"port\":443,\"endpoints\":[\(endpoints)]}"
    }
    try Files.write("{\"schema\":1,\"serial\":1,\"hosts\":{\(entries.joined(separator: ","))}}", to: path)
    return path
  }

  /// Runs the program, and returns the addresses that it tried to contact.
  ///
  /// - Parameters:
  ///   - environment: variables to set, as NAME=VALUE.
  ///   - input: the program's standard input.
  private func contacted(
    _ arguments: [String], _ environment: [String] = [], input: String = ""
  ) async throws -> Set<String> {
    let trace = "\(directory)/trace"
    try Files.write(input, to: "\(directory)/input")
    let calls = "trace=connect,sendto,sendmsg,sendmmsg"
    let shell = #"cd "$1"; shift; exec env -i PATH="$PATH" HOME="$PWD" "$@" < input"#
    let child = try ChildProcess(
      "/bin/sh",
      ["-c", shell, "sh", directory] + environment + ["unshare"] + RoutelessNamespace.arguments
        + ["strace", "-f", "-qq", "-e", calls, "-o", trace, try Files.program] + arguments,
      in: directory)
    try await wait(for: "netopt to end", within: .seconds(60)) { child.exitStatus() != nil }
    var found: Set<String> = []
    for line in try Files.read(trace).split(separator: "\n") {
      for marker in ["inet_addr(\"", "inet_pton(AF_INET6, \""] {
        guard let start = line.firstRange(of: marker)?.upperBound else { continue }
        found.insert(String(line[start...].prefix { $0 != "\"" }))
      }
    }
    return found.subtracting(Self.neverSent)
  }

  private static let hosts: Hosts = [
    "api.test": ["192.0.2.1", "192.0.2.2"], "b.test": ["192.0.2.3"], "c.test": ["2001:db8::4"],
  ]

  @Test("get, fetch, bench and probe contact the hosts of their arguments, and no other host of the list")
  func onlyRequestedHosts() async throws {
    let common = ["--iplist", try list(Self.hosts), "-m", "3"]
    let dns = ["--dns-servers", Self.nameServer]
    let api: Set = ["192.0.2.1", "192.0.2.2"]
    let get = try await contacted(["get", "https://api.test/"] + common + dns)
    #expect(get == api.union([Self.nameServer]))
    let overDNS = try await contacted(["get", "--no-direct", "https://api.test/"] + common + dns)
    #expect(overDNS == [Self.nameServer])
    let proxied = try await contacted(
      ["get", "https://api.test/"] + common + dns, ["https_proxy=http://192.0.2.99:3128"])
    #expect(proxied == ["192.0.2.99"])
    let fetch = try await contacted(
      ["fetch", "--jsonl"] + common + dns,
      input: #"{"url":"https://b.test/"}"# + "\n" + #"{"url":"https://c.test/"}"# + "\n")
    #expect(fetch == ["192.0.2.3", "2001:db8::4", Self.nameServer])
    let bench = try await contacted(["bench", "-n", "1", "https://b.test/"] + common + dns)
    #expect(bench == ["192.0.2.3", Self.nameServer])
    let probe = try await contacted(["probe", "api.test", "--iplist", try list(Self.hosts)])
    #expect(probe == api)
    let whole = try await contacted(["probe", "--iplist", try list(Self.hosts)])
    #expect(whole == ["192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::4"])
  }

  @Test("without a list of its own, a command contacts no host that it does not name")
  func compiledInList() async throws {
    let dns = ["--dns-servers", Self.nameServer, "-m", "3"]
    #expect(try await contacted(["get", "https://other.test/"] + dns) == [Self.nameServer])
    #expect(try await contacted(["get", "http://192.0.2.7/"] + dns) == ["192.0.2.7"])
    let sample = try await contacted(["get", "https://one.one.one.one/"] + dns)
    let endpoints = try #require(EndpointList.builtIn.hosts["one.one.one.one"]).endpoints
    #expect(sample == Set(endpoints.map(\.address.description) + [Self.nameServer]))
  }

  @Test("with any list, get contacts the addresses of its host and the name server", arguments: 1...6)
  func anyList(_ seed: UInt64) async throws {
    var random = SplitMix64(seed: seed)
    var hosts: Hosts = [:]
    for host in 1...Int.random(in: 2...9, using: &random) {
      hosts["h\(host).test"] = (0..<Int.random(in: 1...4, using: &random)).map {
        Bool.random(using: &random) ? "198.51.100.\(host * 10 + $0)" : "2001:db8::\(host):\($0 + 1)"
      }
    }
    let path = try list(hosts)
    let host = "h\(Int.random(in: 1...hosts.count, using: &random)).test"
    let found = try await contacted(
      ["get", "https://\(host)/", "--iplist", path, "--dns-servers", Self.nameServer, "-m", "3"])
    let addresses = try #require(hosts[host])
    #expect(found.isSubset(of: addresses + [Self.nameServer]), "\(hosts) \(host)")
    #expect(!found.isDisjoint(with: addresses))
  }

  @Test(
    "commands that make no requests contact nothing",
    arguments: [
      ["--version"], ["--help"], ["help", "get"], ["get", "--help"], ["iplist", "check", "list.json"],
      ["cache", "list", "cache"], ["keys", "new"], ["sign", "--help"], ["verify", "--help"],
    ])
  func noRequests(_ arguments: [String]) async throws {
    _ = try list(Self.hosts)
    #expect(try await contacted(arguments).isEmpty)
  }
}
