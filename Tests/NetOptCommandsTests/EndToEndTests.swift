import FoundationEssentials
import Glibc
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// Tests of the installed program on real servers.
@Suite struct EndToEndTests {
  /// An origin for the name api.test, and a list with all or some of its four addresses.
  private struct Scene {
    let origin: NginxOrigin
    /// The directory with the list.
    let directory: String
    /// The four addresses: 0 and 1 work, 2 has the certificate of another name, and 3 refuses connections.
    let addresses: [IPAddress]
    /// The path of the file with the authority that issued the certificates.
    let authority: String

    /// Starts the origin. The list contains the addresses with the indices `listed`.
    init(listed: Range<Int> = 0..<4) async throws {
      addresses = IPAddress.freshLoopback(4)
      let port = try FreePort.find(on: addresses)
      let valid = try await TestCertificates.certificate(for: ["api.test"])
      let other = try await TestCertificates.certificate(for: ["portal.test"])
      origin = try await NginxOrigin.start(
        [
          .init(addresses[0], .certificate(valid)), .init(addresses[1], .certificate(valid)),
          .init(addresses[2], .certificate(other)),
        ], port: port)
      authority = try await TestCertificates.authorityFile()
      directory = try TemporaryDirectory.make("scene")
      let endpoints = addresses[listed].map { "{\"ip\":\"\($0)\"}" }.joined(separator: ",")
      try Files.write(
        "{\"schema\":1,\"serial\":1,\"hosts\":{\"api.test\":{\"port\":\(port),\"endpoints\":[\(endpoints)]}}}",
        to: "\(directory)/list.json")
    }

    var url: String { "https://api.test:\(origin.port)/" }

    /// Runs a command with the list, with a name server that does not answer, and without proxies from the
    /// environment of the tests. Returns the exit code and everything that the program printed.
    ///
    /// - Parameter environment: variables to set, as NAME=VALUE.
    func run(
      _ arguments: [String], environment: [String] = []
    ) async throws -> (status: Int32, output: String) {
      var common = ["--iplist", "\(directory)/list.json", "--allow-private", "--cacert", authority]
      // `probe` sends no DNS queries.
      if arguments.first != "probe" { common += ["--dns-servers", "127.0.0.1:1"] }
      let inherited = ["-u", "http_proxy", "-u", "https_proxy", "-u", "all_proxy", "-u", "ALL_PROXY"]
      let child = try ChildProcess(
        "/usr/bin/env",
        inherited + ["-u", "HTTPS_PROXY"] + environment + [try Files.program] + arguments + common,
        in: try TemporaryDirectory.make("run"))
      try await wait(for: "netopt to end", within: .seconds(60)) { child.exitStatus() != nil }
      // The exit status has the form of waitpid(2), with the exit code in the second byte.
      return (try #require(child.exitStatus()) >> 8, try Files.read(child.output))
    }
  }

  /// The line of JSON in the output of a command. The output contains standard output and standard error.
  private func object(_ output: String) throws -> JSON {
    try JSON(try #require(output.split(separator: "\n").first { $0.hasPrefix("{") }))
  }

  @Test("get sends its request to a listed address when no name server answers")
  func getWithoutDNS() async throws {
    let scene = try await Scene()
    defer { scene.origin.stop() }
    let (status, output) = try await scene.run(["get", scene.url, "--json"])
    #expect(status == 0)
    let answer = try object(output)
    #expect(answer["status"].number == 200)
    #expect(answer["http_version"].text == "2")
    #expect(answer["route"]["source"].text == "list")
    #expect(answer["route"]["direct"]["used"].flag == true)
    #expect(answer["tls"]["verified"].flag == true)
    #expect(answer["body_bytes"].number == 6)
    #expect(scene.addresses[..<2].map(\.description).contains(answer["remote_ip"].text ?? ""))
    let entry = try #require(try await scene.origin.waitForLog(1).first)
    #expect(entry.serverName == "api.test")
    #expect(entry.host == "api.test:\(scene.origin.port)")
  }

  @Test("get rejects a certificate of another name, the error states both names, and -k accepts it")
  func wrongCertificate() async throws {
    let scene = try await Scene(listed: 2..<3)
    defer { scene.origin.stop() }
    let (status, output) = try await scene.run(["get", scene.url, "--json"])
    #expect(status == 1)
    let message = try #require(try object(output)["error"]["message"].text)
    #expect(message.contains("portal.test") && message.contains("api.test"))
    let excluded = try object(output)["route"]["candidates"][0]["excluded"].text
    #expect(excluded?.contains("portal.test") == true)
    #expect(try scene.origin.accessLog().isEmpty)
    let (unverified, answer) = try await scene.run(["get", scene.url, "--json", "-k"])
    #expect(unverified == 0, "\(answer)")
    #expect(try object(answer)["tls"]["verified"].flag == false, "\(answer)")
  }

  @Test("a request through a proxy of the environment does not use the list, and the error names the proxy")
  func proxyInEnvironment() async throws {
    let scene = try await Scene()
    defer { scene.origin.stop() }
    let (status, output) = try await scene.run(
      ["get", scene.url, "--json"], environment: ["https_proxy=http://127.0.0.1:1"])
    #expect(status == 1)
    #expect(try object(output)["route"]["direct"]["off"].text == "proxy")
    #expect(try object(output)["error"]["message"].text?.contains("127.0.0.1:1") == true)
  }

  /// The system lets a process send ICMP echo requests if the process has CAP_NET_RAW, or if one of its
  /// groups is in net.ipv4.ping_group_range. The test takes CAP_NET_RAW away. In a new network namespace,
  /// the range is empty by default.
  @Test(
    "probe names the setting and the capability to change when the system refuses ICMP",
    .enabled("\(NetworkNamespace.missing)") { NetworkNamespace.isAvailable })
  func refusedICMP() async throws {
    let scene = try await Scene()
    defer { scene.origin.stop() }
    let child = try ChildProcess(
      "unshare",
      [
        "--net", "setpriv", "--bounding-set=-net_raw", try Files.program, "probe", "--method", "icmp",
        "--json",
        "--iplist", "\(scene.directory)/list.json", "--allow-private",
      ], in: try TemporaryDirectory.make("refused"))
    try await wait(for: "netopt to end") { child.exitStatus() != nil }
    #expect(try #require(child.exitStatus()) >> 8 == 1)
    let output = try Files.read(child.output)
    let endpoint = try object(output)["hosts"][0]["endpoints"][0]
    #expect(endpoint["error"].text?.contains("net.ipv4.ping_group_range") == true, "\(output)")
    #expect(endpoint["error"].text?.contains("CAP_NET_RAW") == true)
    // The failure does not count against the endpoint.
    #expect(endpoint["state"].text == "closed")
  }

  @Test("the program refuses an argument that is not UTF-8 with exit code 64")
  func bytesInArguments() async throws {
    for arguments in [
      "get \"$(printf 'http://127.0.0.1:1/caf\\351')\"", "get -d \"$(printf 'a\\377')\" http://127.0.0.1:1/",
    ] {
      let child = try ChildProcess(
        "/bin/sh", ["-c", "\"$0\" \(arguments) 2>&1", try Files.program],
        in: try TemporaryDirectory.make("bytes"))
      try await wait(for: "netopt to end") { child.exitStatus() != nil }
      #expect(try #require(child.exitStatus()) >> 8 == 64)
      #expect(try Files.read(child.output).contains("is not UTF-8"))
    }
  }

  @Test("probe --watch repeats its rounds until SIGINT, then exits with code 130")
  func watchUntilSignal() async throws {
    let scene = try await Scene()
    defer { scene.origin.stop() }
    let child = try ChildProcess(
      try Files.program,
      [
        "probe", "--watch", "--interval", "0.1", "--json", "--iplist", "\(scene.directory)/list.json",
        "--allow-private", "--cacert", scene.authority,
      ], in: try TemporaryDirectory.make("watch"))
    try await wait(for: "three rounds") { try Files.read(child.output).split(separator: "\n").count >= 3 }
    child.send(SIGINT)
    try await wait(for: "netopt to end") { child.exitStatus() != nil }
    #expect(try #require(child.exitStatus()) >> 8 == 130)
    let lines = try Files.read(child.output).split(separator: "\n")
    for line in lines { #expect(try JSON(line)["hosts"][0]["method"].text == "tls") }
  }

  @Test("probe ranks the working addresses first and shows the quarantined address")
  func probeRanking() async throws {
    let scene = try await Scene()
    defer { scene.origin.stop() }
    let (status, output) = try await scene.run(["probe", "--json"])
    #expect(status == 0)
    let endpoints = try object(output)["hosts"][0]["endpoints"]
    #expect(endpoints[0]["chosen"].flag == true)
    #expect(
      Set([endpoints[0]["ip"].text, endpoints[1]["ip"].text]) == Set(scene.addresses[..<2].map(\.description))
    )
    #expect(endpoints[0]["samples_us"].count == 3)
    let states = (0..<4).map { endpoints[$0]["state"].text }
    #expect(states.contains("quarantined"))
  }

  @Test("bench measures each listed address and excludes the one with a wrong certificate")
  func benchListedAddresses() async throws {
    let scene = try await Scene(listed: 0..<3)
    defer { scene.origin.stop() }
    let (status, output) = try await scene.run(
      ["bench", scene.url, "--targets", "ip", "-n", "7", "--warmup", "0", "--quiet", "--json"])
    #expect(status == 0)
    let targets = try object(output)["targets"]
    #expect(targets.count == 3)
    let excluded = (0..<3).compactMap { targets[$0]["excluded"]["reason"].text }
    #expect(excluded.count == 1 && excluded[0].contains("portal.test"))
    let measured = (0..<3).filter { targets[$0]["excluded"]["reason"].text == nil }
    #expect(measured.allSatisfy { targets[$0]["warm"]["response_us"]["n"].number == 7 })
  }

  @Test("get, probe and bench name the file, the JSON path and the broken rule of a bad list")
  func badList() async throws {
    let scene = try await Scene()
    defer { scene.origin.stop() }
    let bad = "{\"schema\":1,\"serial\":1,\"hosts\":{\"a.test\":{\"endpoints\":[{\"ip\":\"1.2.3\"}]}}}"
    try Files.write(bad, to: "\(scene.directory)/list.json")
    for command in [["get", scene.url], ["probe"], ["bench", scene.url]] {
      let (status, output) = try await scene.run(command)
      #expect(status == 65)
      #expect(output.contains("\(scene.directory)/list.json"))
      #expect(output.contains("$.hosts[\"a.test\"].endpoints[0].ip"))
      #expect(output.contains("is not an IP address"))
    }
  }
}

/// A JSON value whose members and elements are read with subscripts. If the value is missing, the properties
/// are `nil`, and `count` is 0.
private struct JSON {
  private let value: Value?

  private indirect enum Value: Decodable {
    case text(String), number(Double), flag(Bool), list([Value]), object([String: Value]), null

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if container.decodeNil() {
        self = .null
      } else if let flag = try? container.decode(Bool.self) {
        self = .flag(flag)
      } else if let number = try? container.decode(Double.self) {
        self = .number(number)
      } else if let text = try? container.decode(String.self) {
        self = .text(text)
      } else if let list = try? container.decode([Value].self) {
        self = .list(list)
      } else {
        self = .object(try container.decode([String: Value].self))
      }
    }
  }

  private init(_ value: Value?) { self.value = value }

  init(_ text: Substring) throws { value = try JSONDecoder().decode(Value.self, from: Data(text.utf8)) }

  subscript(key: String) -> JSON {
    if case .object(let object) = value { JSON(object[key]) } else { JSON(nil) }
  }
  subscript(index: Int) -> JSON {
    if case .list(let list) = value, index < list.count { JSON(list[index]) } else { JSON(nil) }
  }
  var text: String? { if case .text(let text) = value { text } else { nil } }
  var number: Double? { if case .number(let number) = value { number } else { nil } }
  var flag: Bool? { if case .flag(let flag) = value { flag } else { nil } }
  var count: Int { if case .list(let list) = value { list.count } else { 0 } }
}
