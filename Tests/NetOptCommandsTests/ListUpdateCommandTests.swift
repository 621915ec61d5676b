import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

/// Tests of `netopt iplist update`.
@Suite struct ListUpdateCommandTests {
  private let directory: String
  /// The path of the list that `iplist update` replaces. At first, the list has serial 7.
  private var file: String { "\(directory)/list.json" }

  init() throws {
    directory = try TemporaryDirectory.make("update")
    try Files.write(Self.list(7, ["203.0.113.7", "203.0.113.8"]), to: file)
  }

  /// Returns a list with one host as JSON.
  ///
  /// - Parameter refresh: whether the list has a refresh URL.
  private static func list(_ serial: Int, _ addresses: [String], refresh: Bool = true) -> String {
    let endpoints = addresses.map { #"{"ip":"\#($0)"}"# }.joined(separator: ",")
    let rule = refresh ? #""refresh":{"url":"https://a.example/list.json"},"# : ""
    return
      #"{"schema":1,"serial":\#(serial),\#(rule)"hosts":{"api.example.com":{"endpoints":[\#(endpoints)]}}}"#
  }

  /// A client that responds to requests for list and signature.
  ///
  /// - Parameters:
  ///   - files: the body for each request target. The response to any other target is a 404.
  ///   - status: the status of the responses with a body of `files`.
  private func client(_ files: [String: String], status: Int = 200) -> ScriptedClient {
    ScriptedClient { (request) throws(NetOptError) in
      var response = Samples.response(to: request)
      let body = files[request.url.target]
      response.head = ResponseHead(status: body == nil ? 404 : status)
      response.body = ResponseBody(Array((body ?? "").utf8))
      return response
    }
  }

  private func update(_ options: [String] = [], _ client: ScriptedClient) async -> Run {
    await Run(["iplist", "update", file] + options, client: client)
  }

  @Test("iplist update replaces the file with a newer list and prints the changes")
  func newerList() async throws {
    let new = Self.list(8, ["203.0.113.8", "203.0.113.9"])
    let client = client(["/list.json": new])
    let run = await update([], client)
    #expect(run.code == 0, "\(run.errors)")
    #expect(
      run.output == """
        \(file): serial 7 replaced by serial 8
          + api.example.com 203.0.113.9
          - api.example.com 203.0.113.7

        """)
    #expect(try Files.read(file) == new)
    #expect(try Files.names(in: directory) == ["list.json"])
    // Without a trusted key, the command requests the list but not its signature. The client neither
    // refreshes its own list nor sends probes.
    #expect(client.requests.map(\.url.target) == ["/list.json"])
    #expect(client.isShutDown)
    #expect(run.configurations.allSatisfy { !$0.listUpdates.refresh && !$0.probing.atStart })

    let again = await update(["--json"], client)
    #expect(again.code == 0)
    #expect(
      again.output
        == #"{"schema_version":1,"file":"\#(file)","url":"https://a.example/list.json","updated":false,"#
        + #""serial":{"before":8,"after":8},"added":[],"removed":[]}"# + "\n")
    #expect(await update([], client).output == "\(file): serial 8 is the newest\n")
  }

  @Test(
    "iplist update keeps the file and states the reason when the response is unusable",
    arguments: [
      ("{", 200, "not JSON"), ("<html></html>", 500, "answered with status 500"),
      (list(6, ["203.0.113.7"]), 200, "is 6, but the list in use has 7"),
      (list(7, ["203.0.113.9"]), 200, "is 7 as in the list in use"),
      (list(8, ["10.0.0.1"]), 200, "is a private address"),
      (#"{"schema":1,"serial":8,"expires":"2026-11-20T00:00:00Z","hosts":{}}"#, 200, "the list expired"),
    ])
  func unusableResponse(body: String, status: Int, reason: String) async throws {
    let before = try Files.read(file)
    let run = await update([], client(["/list.json": body], status: status))
    #expect(run.code == 1)
    #expect(run.output.isEmpty)
    #expect(run.errors.contains(reason), "\(run.errors)")
    #expect(run.errors.hasSuffix("\(file) is unchanged\n"))
    #expect(try Files.read(file) == before)
    #expect(try Files.names(in: directory) == ["list.json"])
  }

  @Test("iplist update replaces a signed list and its signature only if the signature is valid")
  func signedList() async throws {
    try await MinisignProgram.makeKey(in: directory)
    let elsewhere = try TemporaryDirectory.make("issue")
    let new = Self.list(8, ["203.0.113.9"])
    try Files.write(new, to: "\(elsewhere)/list.json")
    for path in [file, "\(elsewhere)/list.json"] {
      let signed = await Run(["iplist", "sign", "--key", "\(directory)/list.key", path])
      #expect(signed.code == 0, "\(signed.errors)")
    }
    let signature = try Files.read("\(elsewhere)/list.json.minisig")
    let keys = ["--trusted-key", "\(directory)/list.pub"]
    // The command refuses these responses with a trusted key and without one: an unsigned list never replaces
    // a signed list.
    for options in [keys, []] {
      let unsigned = await update(options, client(["/list.json": new]))
      #expect(unsigned.code == 1)
      #expect(unsigned.errors.contains("https://a.example/list.json.minisig could not be fetched"))
      let page = await update(options, client(["/list.json": new, "/list.json.minisig": "<html>"]))
      #expect(page.code == 1)
    }
    let other = try TemporaryDirectory.make("other")
    try await MinisignProgram.makeKey(in: other)
    let bySomebody = await Run([
      "iplist", "sign", "--key", "\(other)/list.key", "-x", "\(other)/signature", "\(elsewhere)/list.json",
    ])
    #expect(bySomebody.code == 0, "\(bySomebody.errors)")
    let foreign = await update(
      [], client(["/list.json": new, "/list.json.minisig": try Files.read("\(other)/signature")]))
    #expect(foreign.code == 1)
    #expect(foreign.errors.contains("the signature is replaced, not verified"))
    #expect(foreign.errors.contains("name the new key with --trusted-key"))
    #expect(foreign.errors.hasSuffix("\(file) is unchanged\n"))
    let changed = await update(keys, client(["/list.json": new + " ", "/list.json.minisig": signature]))
    #expect(changed.code == 1)
    #expect(changed.errors.contains("was changed"))
    let run = await update(keys, client(["/list.json": new, "/list.json.minisig": signature]))
    #expect(run.code == 0, "\(run.errors)")
    #expect(try Files.read(file) == new)
    #expect(try Files.read(file + ".minisig") == signature)
    #expect(await Run(["iplist", "verify", file] + keys).code == 0)
  }

  @Test("a list without a refresh URL is invalid input")
  func missingURL() async throws {
    try Files.write(Self.list(7, ["203.0.113.7"], refresh: false), to: file)
    let run = await update([], client([:]))
    #expect(run.code == 65)
    #expect(run.errors.contains("$.refresh: is missing"))
    #expect(await Run(["iplist", "update"]).code == 64)
    #expect(await Run(["iplist", "update"], environment: ["NETOPT_IPLIST": file]).code == 65)
    #expect(await Run(["iplist", "update", "/nowhere/list.json"]).code == 65)
  }

  @Test(
    "the JSON of iplist update matches its schema",
    .enabled("\(JSONSchema.missing)") { try await JSONSchema.isInstalled() })
  func schema() async throws {
    let failed = await update(["--json"], client([:]))
    let updated = await update(["--json"], client(["/list.json": Self.list(8, ["203.0.113.9"])]))
    let current = await update(["--json"], client(["/list.json": Self.list(8, ["203.0.113.9"])]))
    #expect([failed.code, updated.code, current.code] == [1, 0, 0])
    #expect(
      try await JSONSchema.faults(
        of: [failed.output, updated.output, current.output], by: "iplist-update") == ["", "", ""])
  }

  @Test("get prints the client's note about the list in use")
  func listNote() async throws {
    let run = await Run(
      ["get", "http://a.example/"], client: ScriptedClient(note: "using the copy, serial 9, and not the file")
    )
    #expect(run.errors == "netopt: note: using the copy, serial 9, and not the file\n")
  }
}
