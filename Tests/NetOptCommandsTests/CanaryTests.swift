import FoundationEssentials
import Glibc
import NetOptCore
import NetOptLocking
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

/// Tests that no output of the program contains the canary, however a command ends. The canary is a text that
/// the secrets in the fixture's key ring contain. `SigningCommandTests` tests the output of `sign`, `verify`
/// and `keys`.
@Suite struct CanaryTests {
  private let fixture: SigningFixture
  init() throws { fixture = try SigningFixture() }

  /// Runs the installed program as a child process, without `http_proxy`, `all_proxy` and `ALL_PROXY` in its
  /// environment. Returns its exit code and everything that it printed.
  private func run(_ arguments: [String]) async throws -> (status: Int32, output: String) {
    let child = try ChildProcess(
      "/usr/bin/env",
      ["-u", "http_proxy", "-u", "all_proxy", "-u", "ALL_PROXY", try Files.program] + arguments,
      in: try TemporaryDirectory.make("canary"))
    try await wait(for: "netopt to end", within: .seconds(60)) { child.exitStatus() != nil }
    return (try #require(child.exitStatus()) >> 8, try Files.read(child.output))
  }

  /// Checks that a text does not contain the canary. `what` says where the text comes from.
  private func expectNoCanary(_ text: String, _ what: [String]) {
    #expect(!text.contains(SigningFixture.canary), "\(what.joined(separator: " ")): \(text)")
  }

  /// The options for signing in `get` commands: first seven with which the command can sign, then some
  /// with which it cannot.
  private static let schemes: [[String]] = [
    ["--sign", "c1"], ["--sign", "c1", "--scheme", "rfc9421"],
    ["--sign", "c1", "--scheme", "sigv4", "--options", #"{"region":"r","service":"s"}"#],
    [
      "--sign", "c1", "--scheme", "sigv4", "--options", #"{"region":"r","service":"s","presign_seconds":60}"#,
    ],
    ["--sign", "c2", "--scheme", "salted-md5", "--allow-weak"],
    ["--sign", "c6", "--scheme", "sealed-key", "--options", #"{"platform_key_id":"c5"}"#], ["--sign", "c7"],
    // No request can be signed with the following options.
    ["--sign", "c2", "--scheme", "salted-md5"], ["--sign", "c3"], ["--sign", "c4"], ["--sign", "c5"],
    ["--sign", "nobody"], ["--sign", "c1", "--scheme", "sigv4"], ["--sign", "c1", "--options", "{"],
    ["--sign", "c1", "--options", #"{"headers":["x-missing"]}"#],
  ]

  @Test("get shows and sends no secret of a key for any scheme, output or status")
  func signedRequest() async throws {
    let heads = Locked<[String]>([])
    let statuses = [200, 302, 401, 503]
    let server = try LoopbackServer(
      .raw { exchange in
        heads.withLock { $0.append(String(decoding: exchange.request.head, as: UTF8.self)) }
        let status = Int(exchange.request.target.prefix(4).dropFirst()) ?? 200
        try exchange.respond(status, status == 302 ? ["Location": "/200"] : [:])
      })
    defer { server.stop() }
    var succeeded = 0
    for (index, scheme) in Self.schemes.enumerated() {
      let status = statuses[index % statuses.count]
      let output = [["-v"], ["--json"], ["-v", "--json"], ["-I"]][index / 2 % 4]
      let arguments =
        ["get", "--keys", fixture.keys, "--retry", "0"] + scheme + output + [
          "http://\(server.endpoint)/\(status)?a=b"
        ]
      let (code, text) = try await run(arguments)
      if code == 0 { succeeded += 1 }
      expectNoCanary(Self.withoutToken(text), arguments)
    }
    #expect(succeeded == 7)
    let seen = heads.withLock(\.self)
    #expect(
      seen.contains { $0.contains("NETOPT1-HMAC-SHA256") } && seen.contains { $0.contains("AWS4-HMAC") })
    // netopt must send the session token of a temporary AWS key. It must send no other secret.
    for head in seen { expectNoCanary(Self.withoutToken(head), ["what the server got"]) }
  }

  /// Removes the session token of a temporary AWS key where netopt sends it: in a header field, or in a
  /// parameter of the URL.
  private static func withoutToken(_ text: String) -> String {
    text.replacing("X-Amz-Security-Token: \(SigningFixture.canary)-token", with: "")
      .replacing("X-Amz-Security-Token=\(SigningFixture.canary)-token", with: "")
  }

  @Test("get shows no secret of a key when the connection fails")
  func failedConnection() async throws {
    let silent = try LoopbackServer(.silent)
    let resetting = try LoopbackServer(.resetting)
    let closing = try LoopbackServer(.closing)
    defer { for server in [silent, resetting, closing] { server.stop() } }
    let refusing = try FreePort.find(on: [.loopback])
    for (index, target) in [
      "\(silent.endpoint)", "\(resetting.endpoint)", "\(closing.endpoint)", "127.0.0.1:\(refusing)",
    ].enumerated() {
      for scheme in [Self.schemes[0], Self.schemes[2], Self.schemes[5], Self.schemes[6]] {
        let arguments =
          ["get", "--keys", fixture.keys, "--max-time", "0.3", "--retry", "1"]
          + (index % 2 == 0 ? ["-v"] : ["--json"])
          + scheme + ["http://\(target)/x"]
        let (code, text) = try await run(arguments)
        #expect(code == 1, "\(text)")
        expectNoCanary(text, arguments)
      }
    }
    let tls = ["get", "-v", "--keys", fixture.keys, "--sign", "c1", "https://\(closing.endpoint)/x"]
    expectNoCanary(try await run(tls).output, tls)
  }

  /// Invalid key rings, each with the canary in a place that an error message might quote.
  private static let rings: [String] = {
    let c = SigningFixture.canary
    return [
      c, "\"\(c)", "{\"schema\":1,\"keys\":[{\"id\":\"c1\",\"secret\":\"\(c)\"", "{\"secret\":\"\(c)\"}",
      "{\"schema\":\"\(c)\",\"keys\":[]}", "{\"schema\":1,\"keys\":[\"\(c)\"]}",
      "{\"schema\":1,\"keys\":[{\"id\":\"c1\",\"secret\":[\"\(c)\"],\"schemes\":[\"netopt1\"]}]}",
      "{\"schema\":1,\"keys\":[{\"id\":\"c1\",\"secret\":\"\(c)\",\"schemes\":[\"\(c)\"]}]}",
      "{\"schema\":1,\"keys\":[{\"id\":\"c1\",\"secret\":\"\(c)\",\"secret_base64\":\"\(c)\",\"schemes\":[]}]}",
      "{\"schema\":1,\"keys\":[{\"id\":\"c1\",\"secret_base64\":\"\(c)!\",\"schemes\":[]}]}",
      "{\"schema\":1,\"keys\":[{\"id\":\"c1\",\"secret\":\"\(c)\\q\",\"schemes\":[]}]}",
      "{\"schema\":1,\"keys\":[{\"id\":\"c1\",\"secrets\":\"\(c)\",\"schemes\":[]}]}",
      "{\"schema\":1,\"keys\":[{\"id\":\"c1\",\"private_key_pem\":\"-----BEGIN PRIVATE KEY-----\\n\(c)\\n-----END PRIVATE KEY-----\\n\",\"schemes\":[\"rfc9421\"]}]}",
      "{\"schema\":1,\"keys\":[{\"id\":\"c1\",\"secret\":\"x\",\"session_token\":{\"a\":\"\(c)\"},\"schemes\":[]}]}",
      "{\"schema\":1,\"keys\":[{\"id\":\"c1\",\"secret\":\"\(c)\",\"schemes\":[],\"salt\":7}]}",
    ]
  }()

  @Test("no command shows or rewrites the content of a key ring that it cannot use", arguments: rings)
  func invalidKeyRing(_ text: String) async throws {
    try fixture.write(text, to: fixture.keys)
    let request = ["https://example.com/"]
    for arguments in [
      ["sign", "--key-id", "c1"] + request, ["verify", "--explain"] + request,
      ["get", "--sign", "c1", "-v", "--json"] + request,
      ["keys", "list"], ["keys", "new", "--key-id", "c9"],
    ] {
      let run = await Run(arguments + ["--keys", fixture.keys])
      #expect(run.code == 65, "\(arguments): \(run.errors)")
      expectNoCanary(run.output + run.errors, arguments)
    }
    // No command rewrote the key ring.
    #expect(try Files.read(fixture.keys) == text)
    chmod(fixture.keys, 0o644)
    let open = await Run(["get", "--sign", "c1", "--keys", fixture.keys] + request)
    #expect(open.code == 65)
    expectNoCanary(open.output + open.errors, ["get, a key ring that others may read"])
  }

  /// The arguments are texts of minisign secret keys that cannot be parsed. Each contains the canary.
  @Test(
    "iplist sign shows nothing of a secret key that it cannot read",
    arguments: [
      "untrusted comment: x\n\(SigningFixture.canary)\n", "\(SigningFixture.canary)\n",
      "untrusted comment: \(SigningFixture.canary)\n\n",
      "untrusted comment: x\nUldR\(SigningFixture.canary)=\nmore\n",
    ])
  func invalidMinisignKey(_ text: String) async throws {
    let directory = try TemporaryDirectory.make("canary-list")
    try fixture.write(text, to: "\(directory)/list.key")
    try Files.write(try RepositoryFile.text("iplist.json"), to: "\(directory)/iplist.json")
    let run = await Run(["iplist", "sign", "--key", "\(directory)/list.key", "\(directory)/iplist.json"])
    #expect(run.code != 0)
    expectNoCanary(run.output + run.errors, ["iplist sign"])
  }
}
