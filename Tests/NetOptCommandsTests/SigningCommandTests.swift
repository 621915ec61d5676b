import FoundationEssentials
import Glibc
import NetOptCore
import NetOptSigning
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

@Suite struct SigningCommandTests {
  private let fixture: SigningFixture
  init() throws { fixture = try SigningFixture() }

  private func sign(_ arguments: [String], input: String = "") async -> Run {
    await Run(["sign", "--keys", fixture.keys] + arguments, input: input)
  }

  private func verify(_ arguments: [String], input: String = "") async -> Run {
    await Run(["verify", "--keys", fixture.keys] + arguments, input: input)
  }

  @Test("sign --jsonl gives the golden vector for each line")
  func goldenVectorAsJSONLine() async {
    let run = await sign(["--jsonl", "--explain"], input: SigningFixture.line + "\n\n" + SigningFixture.line)
    #expect(run.code == 0, "\(run.errors)")
    let lines = run.output.split(separator: "\n")
    #expect(lines.count == 2 && lines[0] == lines[1])
    #expect(
      lines[0].hasPrefix(
        #"{"id":1,"scheme":"netopt1","key_id":"app1.v2","headers":[["Authorization","NETOPT1-HMAC-SHA256 keyid"#
      ))
    #expect(lines[0].contains(#""string_to_sign":"NETOPT1-HMAC-SHA256\napp1.v2\n1700000000\n"#))
    #expect(lines[0].hasSuffix(#""signature":"\#(SigningFixture.golden)"}"#))
  }

  @Test("sign gives the golden vector for a request in curl's options")
  func goldenVectorWithOptions() async {
    let run = await sign([
      "--key-id", "app1.v2", "--now", "1700000000", "--nonce", "AAECAwQFBgcICQoLDA0ODw", "-H",
      "content-type: application/json", "-d", #"{"hello": "world"}"#, SigningFixture.url,
    ])
    #expect(run.code == 0, "\(run.errors)")
    #expect(run.output.hasPrefix("Authorization: NETOPT1-HMAC-SHA256 keyid=app1.v2,"))
    #expect(run.output.hasSuffix("sig=\(SigningFixture.golden)\n"))
  }

  @Test("verify --http checks a message in a file or on standard input and rejects a truncated or late one")
  func rawMessage() async throws {
    let message = """
      POST /user/search?q=a%20b%2Bc&tag=%C3%A9&tag=x&empty= HTTP/1.1
      Host: api.example.com
      Content-Type: application/json
      Authorization: NETOPT1-HMAC-SHA256 keyid=app1.v2,ts=1700000000,nonce=AAECAwQFBgcICQoLDA0ODw,headers=content-type,\
      sig=\(SigningFixture.golden)

      {"hello": "world"}
      """
    let file = fixture.directory + "/request.txt"
    try fixture.write(message, to: file)
    let good = await verify(["--http", file, "--now", "1700000010"])
    #expect(good.code == 0, "\(good.output)\(good.errors)")
    #expect(good.output.hasPrefix("valid: netopt1, key app1.v2, assurance strong\n"))
    let stdin = await verify(["--http", "-", "--now", "1700000010"], input: message)
    #expect(stdin.output == good.output)
    let cut = await verify(["--http", "-"], input: String(message.prefix(80)))
    #expect(cut.code == 1)
    #expect(cut.output.hasPrefix("invalid: malformed-request: the message is cut off"))
    let late = await verify(["--http", file])
    #expect(late.code == 1)
    #expect(late.output.hasPrefix("invalid: too-old: signed "))
    #expect(await verify(["--http", "/nowhere/request"]).code == 65)
  }

  @Test("verify --compare marks the first byte at which the two strings to sign differ")
  func firstDifference() async {
    // The signer's string has the default port in its host, and the verifier's string does not.
    let string =
      "NETOPT1-HMAC-SHA256\napp1.v2\n1700000000\nAAECAwQFBgcICQoLDA0ODw\nPOST\napi.example.com:443\n"
    let file = fixture.directory + "/string"
    try? fixture.write(string, to: file)
    let run = await verify([
      "--now", "1700000000", "--compare", file, "-H",
      "Authorization: NETOPT1-HMAC-SHA256 keyid=app1.v2,ts=1700000000,nonce=AAECAwQFBgcICQoLDA0ODw,headers=,sig=\(SigningFixture.golden)",
      "-X", "POST", "https://api.example.com/",
    ])
    #expect(run.code == 1)
    #expect(
      run.output.contains(
        "the signer's string differs:\n  line 6, byte 16:\n    verifier:  api.example.com\n    signer:    api.example.com:443\n                              ^\n"
      ))
  }

  @Test("verify --jsonl answers the lines in order and exits with code 1 if one is invalid")
  func verifyLines() async {
    let good = SigningFixture.signedLine
    let bad = good.replacing("\"id\":1", with: "\"id\":\"two\"").replacing("user/search", with: "user/delete")
    let run = await verify(["--jsonl"], input: [good, bad, "{", good].joined(separator: "\n"))
    #expect(run.code == 1)
    let lines = run.output.split(separator: "\n")
    #expect(lines.count == 4)
    #expect(
      lines[0].hasPrefix(
        #"{"id":1,"schema_version":1,"valid":true,"reason":"ok","scheme":"netopt1","assurance":"strong","key_id":"app1.v2","checks":["#
      ))
    #expect(
      lines[1].hasPrefix(#"{"id":"two","schema_version":1,"valid":false,"reason":"signature-mismatch""#))
    #expect(lines[2].hasPrefix(#"{"id":null,"schema_version":1,"valid":false,"reason":"malformed-request""#))
    #expect(await verify(["--jsonl"], input: good).code == 0)
  }

  @Test("a second run with the same nonce store rejects a replay, and a broken store is invalid input")
  func replayInNextRun() async throws {
    let store = fixture.directory + "/nonces.db"
    let first = await verify(["--jsonl", "--nonce-store", store], input: SigningFixture.signedLine)
    #expect(first.code == 0, "\(first.output)")
    let second = await verify(["--jsonl", "--nonce-store", store], input: SigningFixture.signedLine)
    #expect(second.code == 1)
    #expect(second.output.contains(#""reason":"replayed""#))
    try fixture.write(
      "no database, but long enough to be looked at for one, which takes some bytes: "
        + String(repeating: "x", count: 100), to: store + "2")
    #expect(
      await verify(["--jsonl", "--nonce-store", store + "2"], input: SigningFixture.signedLine).code == 65)
  }

  @Test("three processes with one nonce store accept the same request once in total")
  func concurrentReplays() async throws {
    let store = fixture.directory + "/nonces.db"
    let input = fixture.directory + "/lines"
    try fixture.write(
      (1...40).map { number in
        SigningFixture.signedLine.replacing("\"id\":1", with: "\"id\":\(number)")
      }.joined(separator: "\n"), to: input)
    let program = try Files.program
    let children = try (1...3).map { _ in
      try ChildProcess(
        "/bin/sh",
        [
          "-c",
          "exec '\(program)' verify --keys '\(fixture.keys)' --jsonl --nonce-store '\(store)' <'\(input)'",
        ],
        in: try TemporaryDirectory.make("verify"))
    }
    var accepted = 0
    for child in children {
      try await wait(for: "verify to end", within: .seconds(60)) { child.exitStatus() != nil }
      let output = try Files.read(child.output)
      #expect(output.split(separator: "\n").count == 40, "\(output)")
      accepted += output.ranges(of: #""valid":true"#).count
      #expect(
        output.ranges(of: #""reason":"replayed""#).count + output.ranges(of: #""valid":true"#).count == 40)
    }
    #expect(accepted == 1)
  }

  @Test("sign refuses a key file that its group or others may read or write")
  func readableKeyFile() async throws {
    for mode: mode_t in [0o644, 0o640, 0o604, 0o620] {
      chmod(fixture.keys, mode)
      let run = await sign(["--jsonl"], input: SigningFixture.line)
      #expect(run.code == 65)
      #expect(run.errors.contains("chmod 600"))
      #expect(run.output.isEmpty)
    }
  }

  @Test(
    "keys list refuses a key ring that breaks a rule, and names its file",
    arguments: [
      "", "[]", "{}", #"{"schema":2,"keys":[]}"#, #"{"schema":1,"keys":{}}"#,
      #"{"schema":1,"keys":[{"id":"a"}]}"#,
      #"{"schema":1,"keys":[{"id":"a","schemes":["netopt1"]}]}"#,
      #"{"schema":1,"keys":[{"id":"a","secret":"x","schemes":["md4"]}]}"#,
      #"{"schema":1,"keys":[{"id":"a","secret":"","schemes":["netopt1"]}]}"#,
      #"{"schema":1,"keys":[{"id":"a","secret":"x","secret_env":"Y","schemes":["netopt1"]}]}"#,
      #"{"schema":1,"keys":[{"id":"","secret":"x","schemes":["netopt1"]}]}"#,
      #"{"schema":1,"keys":[{"id":"a","secret":"x","schemes":[],"scopes":[]}]}"#,
      #"{"schema":1,"keys":[{"id":"a","secret":"x","schemes":[],"not_after":"soon"}]}"#,
      #"{"schema":1,"keys":[{"id":"a","secret":"x","schemes":[],"sceret":"y"}]}"#,
      #"{"schema":1,"keys":[{"id":"a","secret":"x","schemes":[]},{"id":"a","secret":"y","schemes":[]}]}"#,
      #"{"schema":1,"keys":[{"id":"a","private_key_pem":"x","schemes":["rfc9421"]}]}"#,
      #"{"schema":1,"keys":[{"id":"a","secret_base64":"****","schemes":["rfc9421"]}]}"#,
    ])
  func brokenKeyRing(_ text: String) async throws {
    try fixture.write(text, to: fixture.keys)
    let run = await Run(["keys", "list", "--keys", fixture.keys])
    #expect(run.code == 65)
    #expect(run.errors.contains("the key ring \(fixture.keys) is not usable: "), "\(run.errors)")
  }

  @Test("keys new adds a working key to a file of mode 0600, prints no secret and refuses a known id")
  func newKey() async throws {
    let file = fixture.directory + "/new.json"
    let first = await Run(["keys", "new", "--keys", file, "--key-id", "app.v1"])
    #expect(first.code == 0, "\(first.errors)")
    #expect(first.output.isEmpty)
    var status = stat()
    #expect(stat(file, &status) == 0 && status.st_mode & 0o777 == 0o600)
    let before = try Files.read(file)
    #expect(
      await Run(["keys", "new", "--keys", file, "--key-id", "app.v2", "--scheme", "rfc9421"]).code == 0)
    #expect(try Files.read(file).contains(before.prefix(60)))
    #expect(await Run(["keys", "new", "--keys", file, "--key-id", "app.v2"]).code == 64)
    let list = await Run(["keys", "list", "--keys", file])
    #expect(list.output == "app.v1  secret  netopt1\napp.v2  secret  rfc9421\n")
    // `verify` accepts a request that `sign` signed with the new key.
    let signed = await Run(["sign", "--keys", file, "--key-id", "app.v1", "https://example.com/"])
    let field = String(signed.output.dropLast())
    #expect(await Run(["verify", "--keys", file, "-H", field, "https://example.com/"]).code == 0)
  }

  @Test("keys new keeps all keys when 16 runs add one each at the same time")
  func newKeysAtOnce() async throws {
    let file = try TemporaryDirectory.make("new-keys") + "/keys.json"
    let codes = await withTaskGroup(of: Int32.self) { group in
      for number in 0..<16 {
        group.addTask { await Run(["keys", "new", "--keys", file, "--key-id", "app.v\(number)"]).code }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(codes.allSatisfy { $0 == 0 })
    let ring = try KeyRing.load(file)
    for number in 0..<16 { #expect(ring["app.v\(number)"] != nil, "app.v\(number)") }
  }

  @Test("a weak scheme needs --allow-weak, an explicit --scheme and a legacy key")
  func weakSchemes() async throws {
    let url = "https://example.com/user/search?q=1"
    let refused = await sign(["--scheme", "salted-md5", "--key-id", "c2", url])
    #expect(refused.code == 1)
    #expect(refused.errors.contains("weak"))
    let modern = await sign(["--scheme", "salted-md5", "--allow-weak", "--key-id", "c1", url])
    #expect(modern.code == 1 && modern.output.isEmpty)
    let signed = await sign(["--scheme", "salted-md5", "--allow-weak", "--key-id", "c2", url])
    #expect(signed.code == 0, "\(signed.errors)")
    let fields = signed.output.split(separator: "\n").flatMap { ["-H", String($0)] }
    let verdict = await verify(["--scheme", "salted-md5", "--allow-weak", "--json"] + fields + [url])
    #expect(verdict.code == 0)
    #expect(verdict.output.contains(#""assurance":"weak""#))
    #expect(
      await verify(["--scheme", "salted-md5"] + fields + [url]).output.hasPrefix("invalid: weak-scheme"))
    // `verify` never selects the weak scheme on its own.
    #expect(await verify(["--allow-weak"] + fields + [url]).output.hasPrefix("invalid: no-signature"))
  }

  @Test("sign and verify report usage errors with code 64, unusable keys with 65, failed lines with 1")
  func mistakes() async throws {
    #expect(await Run(["sign", "https://example.com/"]).code == 64)
    #expect(await sign([]).code == 64)
    #expect(await sign(["https://example.com/"]).code == 64)
    #expect(await sign(["--key-id", "nobody", "https://example.com/"]).code == 65)
    #expect(await sign(["--key-id", "app1.v2", "--scheme", "md5", "https://example.com/"]).code == 64)
    #expect(await sign(["--key-id", "app1.v2", "--options", "{", "https://example.com/"]).code == 64)
    #expect(await sign(["--key-id", "app1.v2", "--options", #"{"x":1}"#, "https://example.com/"]).code == 64)
    #expect(await sign(["--key-id", "app1.v2", "nowhere"]).code == 64)
    #expect(await verify(["--http", "-", "https://example.com/"], input: "").code == 64)
    #expect(await verify(["--keys", "/nowhere/keys", "https://example.com/"]).code == 65)
    #expect(await verify(["--jsonl", "--compare", "/nowhere/string"], input: "").code == 64)
    let failed = await sign(
      ["--jsonl"], input: #"{"id":7,"method":"GET","url":"https://e.com/","key_id":"nobody"}"#)
    #expect(failed.code == 1)
    #expect(failed.output.hasPrefix(#"{"id":7,"error":{"code":"unknown-key""#))
  }

  @Test("sign, verify and keys print no secret, whatever the scheme, the options and the outcome")
  func noSecrets() async throws {
    var runs: [Run] = []
    let urls = ["https://example.com/a?b=c", "nowhere", "https://example.com/\u{1}"]
    let options: [[String]] = [
      [], ["--explain"], ["--json", "--explain"], ["--scheme", "rfc9421", "--explain"],
      [
        "--scheme", "sigv4", "--region", "r", "--service", "s", "--options",
        #"{"region":"r","service":"s","omit_session_token":true}"#,
      ],
      ["--scheme", "salted-md5", "--allow-weak", "--explain", "--json"],
      ["--scheme", "sealed-key", "--options", #"{"platform_key_id":"c5"}"#, "--explain"],
      [
        "--scheme", "sealed-key", "--allow-weak", "--options",
        #"{"platform_key_id":"c5","inner":"salted-md5"}"#, "--explain",
      ],
    ]
    for key in ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "nobody"] {
      for option in options {
        for url in urls {
          let signed = await sign(["--key-id", key] + option + [url])
          runs.append(signed)
          let fields = signed.output.split(separator: "\n").filter { $0.contains(": ") && !$0.hasPrefix("#") }
            .flatMap { ["-H", String($0)] }
          runs.append(await verify(option + ["--explain", "--show-expected"] + fields + [url]))
          runs.append(await verify(option + ["--explain", "--json"] + fields + [url + "x"]))
        }
      }
    }
    runs.append(await Run(["keys", "list", "--keys", fixture.keys]))
    runs.append(await Run(["keys", "list", "--json", "--keys", fixture.keys]))
    runs.append(await Run(["keys", "new", "--keys", fixture.keys, "--key-id", "c1"]))
    // Now the end of the key ring is missing, so it is not valid JSON.
    try fixture.write(try Files.read(fixture.keys).dropLast(9) + "}", to: fixture.keys)
    runs.append(await Run(["keys", "list", "--keys", fixture.keys]))
    runs.append(await sign(["--key-id", "c1", "https://example.com/"]))
    #expect(runs.contains { $0.code == 0 } && runs.contains { $0.code == 65 })
    // A request with a temporary AWS key includes the session token of the key. The token may be in the
    // output as a header field to add (text or JSON) and as a line of the canonical request, and nowhere
    // else.
    for run in runs {
      let output = run.output.replacing("X-Amz-Security-Token: \(SigningFixture.canary)-token", with: "")
        .replacing(#"["X-Amz-Security-Token","\#(SigningFixture.canary)-token"]"#, with: "")
        .replacing("x-amz-security-token:\(SigningFixture.canary)-token", with: "")
      #expect(
        !output.contains(SigningFixture.canary) && !run.errors.contains(SigningFixture.canary),
        "\(run.output)\(run.errors)")
    }
  }

  @Test(
    "key rings, signing lines, vectors and the JSON of the commands match their schemas",
    .enabled("\(JSONSchema.missing)") { try await JSONSchema.isInstalled() })
  func schemas() async throws {
    #expect(try await JSONSchema.faults(of: try Files.read(fixture.keys), by: "keys") == "")
    #expect(try await JSONSchema.faults(of: SigningFixture.line, by: "signing-line") == "")
    #expect(
      try await JSONSchema.faults(
        of: try RepositoryFile.text("Tests/Vectors/signing.json"), by: "signing-vectors") == "")
    let list = await Run(["keys", "list", "--json", "--keys", fixture.keys])
    #expect(try await JSONSchema.faults(of: list.output, by: "keys-list") == "")
    let signed = [
      await sign(["--jsonl", "--explain"], input: SigningFixture.line),
      await sign(["--json", "--key-id", "c1", "https://e.com/"]),
      await sign([
        "--json", "--key-id", "c1", "--scheme", "sigv4", "--region", "r", "--service", "s", "--presign", "60",
        "https://e.com/",
      ]),
      await sign(["--json", "--key-id", "c3", "https://e.com/"]),
    ]
    for run in signed {
      #expect(try await JSONSchema.faults(of: run.output, by: "sign") == "", "\(run.output)")
    }
    let verified = [
      await verify(["--jsonl", "--explain"], input: SigningFixture.signedLine),
      await verify(
        ["--jsonl", "--explain"],
        input: SigningFixture.signedLine.replacing("hello\\\": ", with: "hello\\\":")),
      await verify(["--jsonl"], input: "x"), await verify(["--json", "--show-expected", "https://e.com/"]),
    ]
    for run in verified {
      #expect(try await JSONSchema.faults(of: run.output, by: "verify") == "", "\(run.output)")
    }
    #expect(verified[1].output.contains(#""near_miss":{"code":"body-"#), "\(verified[1].output)")
  }
}
