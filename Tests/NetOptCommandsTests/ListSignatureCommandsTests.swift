import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

/// Tests of `netopt iplist sign` and `netopt iplist verify`, compared with the program minisign.
@Suite struct ListSignatureCommandsTests {
  private static let list = #"""
    {"schema":1,"serial":7,"hosts":{"api.example.com":{"endpoints":[{"ip":"203.0.113.7"}]}}}
    """#
  private let directory: String
  /// The path of the list. Its signature is in "list.json.minisig".
  private var file: String { "\(directory)/list.json" }
  /// The path of the secret key.
  private var key: String { "\(directory)/list.key" }
  /// The path of the public key.
  private var publicKey: String { "\(directory)/list.pub" }

  init() async throws {
    directory = try TemporaryDirectory.make("signatures")
    try Files.write(Self.list, to: file)
    try await MinisignProgram.makeKey(in: directory)
  }

  private func sign(_ options: [String] = [], environment: [String: String] = [:], input: String = "") async
    -> Run
  {
    await Run(["iplist", "sign", "--key", key] + options + [file], environment: environment, input: input)
  }

  private func verify(_ options: [String] = []) async -> Run {
    await Run(["iplist", "verify", "--trusted-key", publicKey] + options + [file])
  }

  @Test(
    "netopt and minisign verify each other's signatures, prehashed and legacy",
    arguments: [[], ["--legacy"]])
  func minisignAgrees(options: [String]) async throws {
    let signed = await sign(options + ["-t", "our comment"])
    #expect(signed.code == 0, "\(signed.errors)")
    #expect(signed.output.hasPrefix("\(file).minisig: signature of serial 7 by the key "))
    let theirs = try await MinisignProgram.run(
      ["-V", "-Q", "-p", "list.pub", "-m", "list.json"], in: directory)
    #expect(theirs.isFine && theirs.output == "our comment\n", "\(theirs.output)")
    let ours = await verify()
    #expect(ours.code == 0)
    #expect(
      ours.output.hasSuffix("(\(options.isEmpty ? "prehashed" : "legacy"))\ntrusted comment: our comment\n"))

    let again = try await MinisignProgram.run(
      ["-S", "-s", "list.key", "-m", "list.json", "-t", "their comment"] + (options.isEmpty ? [] : ["-l"]),
      in: directory)
    #expect(again.isFine, "\(again.output)")
    #expect(await verify().output.hasSuffix("trusted comment: their comment\n"))
  }

  @Test("iplist sign replaces the old signature, and -x chooses another file")
  func replacedSignature() async throws {
    #expect(await sign().code == 0)
    let first = try Files.read(file + ".minisig")
    #expect(first.contains("\ntrusted comment: timestamp:1795219200\tfile:list.json\thashed\n"))
    #expect(await sign(["-c", "first line", "-t", "x"]).code == 0)
    let second = try Files.read(file + ".minisig")
    #expect(second.hasPrefix("untrusted comment: first line\n") && second != first)
    #expect(await sign(["-x", "\(directory)/other"]).code == 0)
    #expect(try Files.read("\(directory)/other") == first)
    #expect(
      try Files.names(in: directory).filter { !$0.hasPrefix("sh") } == [
        "list.json", "list.json.minisig", "list.key", "list.pub", "other",
      ])
  }

  @Test("iplist sign refuses a list with a private address unless --allow-private is given")
  func faultyList() async throws {
    try Files.write(Self.list.replacing("203.0.113.7", with: "10.0.0.1"), to: file)
    let run = await sign()
    #expect(run.code == 65)
    #expect(run.errors.contains("is a private address"))
    #expect(try !Files.names(in: directory).contains("list.json.minisig"))
    #expect(await sign(["--allow-private"]).code == 0)
  }

  @Test("iplist verify rejects a changed list and a signature by an untrusted key")
  func changedList() async throws {
    #expect(await sign().code == 0)
    try Files.write(Self.list.replacing("203.0.113.7", with: "203.0.113.8"), to: file)
    let run = await verify()
    #expect(run.code == 1)
    #expect(run.output.isEmpty)
    #expect(run.errors.contains("the file or its signature was changed"))
    try Files.write(Self.list, to: file)
    #expect(await verify().code == 0)
    let other = try TemporaryDirectory.make("other")
    try await MinisignProgram.makeKey(in: other)
    let foreign = await Run(["iplist", "verify", "--trusted-key", "\(other)/list.pub", file])
    #expect(foreign.code == 1)
    #expect(foreign.errors.contains("which is not trusted"))
    #expect(await verify(["--trusted-key", "\(other)/list.pub"]).code == 0)
  }

  @Test("iplist verify refuses a file of more than 1 MiB")
  func largeFile() async throws {
    #expect(await sign().code == 0)
    try Files.write(String(repeating: " ", count: (1 << 20) + 2), to: file)
    let run = await verify()
    #expect(run.code == 65)
    #expect(run.errors.contains("is larger than 1048576 bytes"))
  }

  @Test("trusted keys come from NETOPT_TRUSTED_KEYS too, and missing or wrong keys are errors")
  func keysInEnvironment() async throws {
    #expect(await sign().code == 0)
    let text = String(try Files.read(publicKey).split(separator: "\n")[1])
    for value in [text, publicKey, " \(text) , \(publicKey)"] {
      let run = await Run(["iplist", "verify", file], environment: ["NETOPT_TRUSTED_KEYS": value])
      #expect(run.code == 0, "\(run.errors)")
    }
    for command in [["iplist", "verify", file], ["get", "https://a.example/"]] {
      let empty = await Run(command, environment: ["NETOPT_TRUSTED_KEYS": ","])
      #expect(empty.code == 64)
      #expect(empty.errors.contains("contains no key"))
    }
    let none = await Run(["iplist", "verify", file])
    #expect(none.code == 64)
    #expect(none.errors.contains("no key is trusted; give one with --trusted-key"))
    let wrong = await Run(["iplist", "verify", file, "--trusted-key", "/nowhere/key"])
    #expect(wrong.code == 64)
    #expect(wrong.errors.contains("--trusted-key takes a minisign public key"))
    #expect(await Run(["iplist", "verify", file, "--trusted-key", file]).code == 65)
    // `iplist sign` looks for the secret key in minisign's default file.
    let usual = await Run(["iplist", "sign", file], environment: ["HOME": "/nowhere"])
    #expect(usual.errors.contains("/nowhere/.minisign/minisign.key"))
  }

  @Test("a missing or broken signature or key is invalid input, and an unwritable file an error")
  func invalidFiles() async throws {
    let unsigned = await verify()
    #expect(unsigned.code == 65)
    #expect(unsigned.errors.contains("list.json.minisig: No such file"))
    try Files.write("<html>", to: file + ".minisig")
    let page = await verify()
    #expect(page.code == 65)
    #expect(page.errors.contains("a minisign signature has 4 lines, but this file has 1"))
    let key = await Run(["iplist", "sign", "--key", publicKey, file])
    #expect(key.code == 65)
    #expect(await Run(["iplist", "sign", "--key", self.key, "-"]).code == 64)
    let folder = await sign(["-x", "/nowhere/signature"])
    #expect(folder.code == 1)
    #expect(folder.errors.contains("/nowhere/signature cannot be written: No such file or directory"))
  }

  /// One test covers all three ways to give the password, because each use of an encrypted key takes seconds.
  @Test("an encrypted key takes its password from standard input, the environment or a file")
  func encryptedKey() async throws {
    let made = try await MinisignProgram.run(
      ["-G", "-f", "-s", "list.key", "-p", "list.pub"], in: directory, password: "correct horse")
    try #require(made.isFine, "\(made.output)")
    let typed = await sign(input: "correct horse\nand more\n")
    #expect(typed.code == 0, "\(typed.errors)")
    #expect(await verify().code == 0)
    let environment = await sign(environment: ["NETOPT_KEY_PASSWORD": "wrong mule"])
    #expect(environment.code == 65)
    #expect(environment.errors.contains("the password is wrong, or the key is damaged"))
    #expect(!environment.errors.contains("mule"))
    try Files.write("correct horse\r\n", to: "\(directory)/password")
    #expect(await sign(["--password-file", "\(directory)/password"]).code == 0)
  }

  @Test(
    "the JSON of iplist sign and iplist verify matches its schemas",
    .enabled("\(JSONSchema.missing)") { try await JSONSchema.isInstalled() })
  func schemas() async throws {
    let missing = await verify(["--json"])
    let signed = await sign(["--json"])
    let valid = await verify(["--json"])
    try Files.write(Self.list + " ", to: file)
    let invalid = await verify(["--json"])
    #expect([missing.code, signed.code, valid.code, invalid.code] == [65, 0, 0, 1])
    #expect(invalid.output.contains(#""valid":false"#) && valid.output.contains(#""valid":true"#))
    #expect(try await JSONSchema.faults(of: signed.output, by: "iplist-sign") == "")
    #expect(
      try await JSONSchema.faults(of: [missing.output, valid.output, invalid.output], by: "iplist-verify")
        == ["", "", ""])
  }
}
