import NetOpt
import NetOptCaching
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

/// Tests that the commands in README.md and docs/lists.md work.
@Suite struct ReadmeCommandsTests {
  /// The commands in README.md and docs/lists.md: the lines in `sh` blocks that begin with `netopt`, without
  /// their comments.
  private static let commands: [String] = {
    let texts = ["README.md", "docs/lists.md"].compactMap { try? RepositoryFile.text($0) }
    return texts.joined().matches(of: /```sh\n([^`]*)```/).flatMap { $0.output.1.split(separator: "\n") }
      .filter { $0.hasPrefix("netopt ") }.map { String($0.prefix { $0 != "#" }) }
  }()

  @Test("README.md and docs/lists.md show each command")
  func eachCommandIsShown() {
    for command in [
      "get", "probe", "bench", "compare", "merge", "iplist suggest", "iplist check", "iplist sign",
      "iplist verify", "iplist update", "help", "keys new", "sign", "verify",
      "cache stats", "cache list", "cache explain", "cache verify", "cache clear", "cache sim",
    ] {
      #expect(Self.commands.contains { $0.hasPrefix("netopt \(command) ") })
    }
  }

  /// Runs each command with a client that answers without a network.
  @Test("each command in README.md and docs/lists.md exits with code 0", arguments: commands)
  func itRuns(_ command: String) async throws {
    // The test uses a copy of the list, because `iplist sign` writes the signature next to the list.
    let directory = try TemporaryDirectory.make("readme")
    let list = try RepositoryFile.text("iplist.json").replacing(
      "\"hosts\"", with: "\"refresh\": {\"url\": \"https://one.one.one.one/iplist.json\"}, \"hosts\"")
    try Files.write(list, to: "\(directory)/iplist.json")
    try await MinisignProgram.makeKey(in: directory)
    let signed = try await MinisignProgram.run(["-S", "-s", "list.key", "-m", "iplist.json"], in: directory)
    #expect(signed.isFine)
    let arguments = command.split(separator: " ").dropFirst().map { word in
      [".json", ".key", ".pub", ".http", ".html", ".csv", "responses"].contains { word.hasSuffix($0) }
        ? "\(directory)/\(word)" : String(word)
    }
    // The `cache` commands need a cache directory, so the test creates an empty one.
    let store = DiskStore("\(directory)/responses") { Issue.record("\($0)") }
    store.open()
    store.close()
    try Files.write("key,size\n/a,100\n/b,200\n/a,100\n", to: "\(directory)/requests.csv")
    let signature = try Files.read("\(directory)/iplist.json.minisig")
    if !command.hasPrefix("netopt keys new") { try await Self.makeKeyAndRequest(in: directory) }
    let probe = EndpointProbe(
      address: Samples.address("1.1.1.1"), rank: 1, rtt: .milliseconds(9), samples: [.milliseconds(9)],
      state: .closed, chosen: true)
    let host = HostProbe(host: "one.one.one.one", port: 443, method: .tls, endpoints: [probe])
    let client = ScriptedClient(list: .builtIn, probes: [host]) { (request) throws(NetOptError) in
      var response = Samples.response(to: request)
      // Requests to 1.1.1.1 take 10 ms, and all others 20 ms. With equal times, `iplist suggest` would refuse
      // to order the addresses.
      var timings = Timings()
      timings.wait = .milliseconds(request.options.routing == .pinned(Samples.address("1.1.1.1")) ? 10 : 20)
      response.body = ResponseBody([], timings: timings)
      guard request.url.path.hasPrefix("/iplist.json") else { return response }
      let isSignature = request.url.path.hasSuffix(".minisig")
      response.body = ResponseBody(Array((isSignature ? signature : list).utf8))
      return response
    }
    // Each other JSON file that the command names is a saved run of `bench`, which the test makes first.
    let others = ["iplist.json", "keys.json"]
    for name in arguments where name.hasSuffix(".json") && !others.contains(where: name.hasSuffix) {
      let saved = await Run(
        ["bench", "--warm", "-n8", "--seed=1", "--json=\(name)", "https://one.one.one.one/"], client: client)
      #expect(saved.code == 0, "\(saved.errors)")
    }
    let run = await Run(arguments, client: client)
    #expect(run.code == 0, "\(command): \(run.errors)")
  }

  /// Creates a key ring, and a request that is signed with its key.
  private static func makeKeyAndRequest(in directory: String) async throws {
    let keys = ["--keys", "\(directory)/keys.json", "--key-id", "app1.v1"]
    #expect(await Run(["keys", "new"] + keys).code == 0)
    let signed = await Run(["sign"] + keys + ["https://api.example.com/user/search?q=1"])
    #expect(signed.code == 0, "\(signed.errors)")
    try Files.write(
      "GET /user/search?q=1 HTTP/1.1\nHost: api.example.com\n\(signed.output)\n",
      to: "\(directory)/request.http")
  }
}
