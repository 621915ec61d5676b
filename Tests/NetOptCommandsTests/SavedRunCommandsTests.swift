import FoundationEssentials
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

/// Tests of the commands that read runs which `bench --json` saved: `compare`, `merge` and `iplist suggest`.
@Suite struct SavedRunCommandsTests {
  /// Saves a run with scripted response times and returns the name of its file.
  ///
  /// - Parameters:
  ///   - times: the response time of each target in milliseconds. The keys are the addresses, and "dns" for
  ///     the target that uses DNS. Each request takes up to 0.4 ms longer. Requests to a target without a
  ///     time fail.
  ///   - rounds: the number of warm rounds. Default: 80.
  private static func save(
    _ name: String, in folder: String, _ times: [String: Double], rounds: Int = 80
  ) async throws -> String {
    let file = "\(folder)/\(name).json"
    let client = BenchFixture.client()
    let scripted = ScriptedClient(list: BenchFixture.list, probes: []) { request throws(NetOptError) in
      let id =
        switch request.options.routing {
        case .pinned(let address): address.description
        default: "dns"
        }
      guard let time = times[id] else { throw Samples.error }
      var timings = Timings()
      let number = client.requests.count
      _ = try? await client.execute(request)
      timings.wait = .microseconds(Int64(time * 1000) + Int64(number * 37 % 400))
      var response = Samples.response(to: request)
      response.body = ResponseBody([], timings: timings)
      response.reused = request.options.connection == .pooled
      return response
    }
    let run = await BenchFixture.run(
      ["--warm", "-n\(rounds)", "--seed=1", "--json=\(file)"], client: scripted)
    #expect(run.code == 0, "\(run.errors)")
    return file
  }

  /// The directory for the saved runs.
  private let folder: String
  /// The response time of each target in milliseconds, for `save`.
  private let usual = ["203.0.113.7": 20.0, "2001:db8::7": 25, "dns": 30]

  init() throws { folder = try TemporaryDirectory.make("runs") }

  @Test(
    "compare exits with code 5 for a slower target, but not below --min-effect or for equal runs",
    .enabled("\(JSONSchema.missing)") { try await JSONSchema.isInstalled() })
  func regression() async throws {
    let before = try await Self.save("before", in: folder, usual)
    let after = try await Self.save("after", in: folder, ["203.0.113.7": 20, "2001:db8::7": 29, "dns": 25])
    let run = await Run(["compare", before, after])
    #expect(run.code == 5)
    #expect(run.output.contains("were not interleaved"))
    #expect(run.output.split(separator: "\n").allSatisfy { $0.count <= 80 })
    let json = await Run(["compare", "--json", before, after])
    #expect(try await JSONSchema.faults(of: json.output, by: "compare") == "")
    #expect(json.output.contains("\"regression\":true"))
    #expect(await Run(["compare", before, before]).code == 0)
    // A faster target is no regression, and neither is a change below `--min-effect`.
    #expect(await Run(["compare", "--min-effect", "50", before, after]).code == 0)
  }

  @Test(
    "merge adds the samples of two runs, and warns about the same run twice",
    .enabled("\(JSONSchema.missing)") { try await JSONSchema.isInstalled() })
  func merge() async throws {
    let first = try await Self.save("first", in: folder, usual)
    let second = try await Self.save("second", in: folder, ["203.0.113.7": 40, "dns": 30])
    let merged = await Run(["merge", "--json", first, second])
    #expect(merged.code == 0 && merged.errors == "")
    #expect(try await JSONSchema.faults(of: merged.output, by: "merge") == "")
    let file = "\(folder)/merged.json"
    try Files.write(merged.output, to: file)
    let text = await Run(["merge", file])
    #expect(text.output.contains("160/160"))
    // The first run has 80 responses of this address, and the second run has none, because it could not use
    // the address.
    #expect(text.output.contains("80/80"))
    // Half of the requests took 20 ms, and the other half 40 ms.
    let row = try #require(text.output.split(separator: "\n").first { $0.hasPrefix("203.0.113.7") })
    #expect(row.contains(" 20.") && row.contains(" 40."))
    #expect(await Run(["compare", first, second]).code == 5)
    #expect(await Run(["compare", file, file]).code == 0)
    let twice = await Run(["merge", first, first])
    #expect(twice.errors.contains("more than once"))
  }

  @Test(
    "iplist suggest prints the measurements behind its suggestion",
    .enabled("\(JSONSchema.missing)") { try await JSONSchema.isInstalled() })
  func suggestion() async throws {
    let file = try await Self.save("run", in: folder, ["203.0.113.7": 35, "2001:db8::7": 25, "dns": 30])
    let run = await Run(["iplist", "suggest", "--from", file])
    #expect(run.code == 0, "\(run.errors)")
    #expect(run.output.contains("2001:db8::7 p50 25."))
    #expect(run.output.contains("203.0.113.7 slower than dns by 5.0"))
    let json = await Run(["iplist", "suggest", "--from", file, "--json"])
    #expect(try await JSONSchema.faults(of: json.output, by: "iplist-suggest") == "")
  }

  @Test("iplist suggest refuses to order two addresses that are equally fast")
  func tie() async throws {
    let file = try await Self.save("tie", in: folder, ["203.0.113.7": 20, "2001:db8::7": 20, "dns": 30])
    let run = await Run(["iplist", "suggest", "--from", file])
    #expect(run.code == 1 && run.output == "")
    #expect(run.errors.contains("the run cannot tell the 2 addresses apart"))
  }

  @Test("iplist suggest suggests removing an address that the run could not use")
  func unusableAddress() async throws {
    let file = try await Self.save("dead", in: folder, ["203.0.113.7": 20, "dns": 30])
    let run = await Run(["iplist", "suggest", "--from", file])
    #expect(run.output.contains("REMOVE") && run.output.contains("2001:db8::7 excluded by the run: "))
  }

  @Test(
    "compare, merge and iplist suggest name the file and the fault of an invalid run",
    arguments: [
      ("", "is not the JSON"), ("{}", "$.schema_version: is missing"), ("[]", "$: is not of type "),
      ("{\"schema_version\":2,\"request\":{\"url\":\"x\"},\"targets\":[]}", "$.schema_version: is 2"),
      (
        "{\"schema_version\":1,\"request\":{\"url\":\"x\"},\"targets\":[{\"id\":\"a\",\"kind\":\"udp\",\"counts\":{}}]}",
        "$.targets[0].kind: must be ip or dns"
      ),
      (
        "{\"schema_version\":1,\"request\":{\"url\":\"x\"},\"targets\":[{\"id\":\"a\",\"kind\":\"ip\",\"counts\":{\"ok\":-1}}]}",
        "$.targets[0]: has an invalid count"
      ),
    ])
  func invalidRun(text: String, message: String) async throws {
    let file = "\(folder)/broken.json"
    try Files.write(text, to: file)
    for arguments in [["compare", file, file], ["merge", file], ["iplist", "suggest", "--from", file]] {
      let run = await Run(arguments)
      #expect(run.code == 65)
      #expect(run.errors.contains(file) && run.errors.contains(message), "\(run.errors)")
    }
  }

  /// Takes every seventh number of a saved run and replaces it by six other values, one after the other. For
  /// each of these files, `merge` must exit with code 0 or 65, and no command may trap.
  @Test("merge reads or refuses a run with odd numbers, and compare and suggest do not trap")
  func brokenNumbers() async throws {
    let good = try Files.read(try await Self.save("good", in: folder, usual, rounds: 8))
    // The positions at which a number without a sign begins.
    let numberStarts = good.indices.filter { index in
      good[index].isNumber && index > good.startIndex && !good[good.index(before: index)].isNumber
        && ":,[".contains(good[good.index(before: index)])
    }
    for (number, start) in numberStarts.enumerated() where number % 7 == 0 {
      let end = good[start...].firstIndex { !$0.isNumber } ?? good.endIndex
      for value in ["-1", "9223372036854775807", "0", "1e308", "null", "18446744073709551616"] {
        let broken = good[..<start] + value + good[end...]
        let file = "\(folder)/broken.json"
        try Files.write(String(broken), to: file)
        let code = await Run(["merge", file]).code
        #expect(code == 0 || code == 65)
        _ = await Run(["compare", file, file])
        _ = await Run(["iplist", "suggest", "--from", file])
      }
    }
  }

  @Test("a missing file name is a usage error, and a file that does not exist invalid input")
  func missingFiles() async {
    #expect(await Run(["iplist", "suggest"]).code == 64)
    #expect(await Run(["compare", "one.json"]).code == 64)
    #expect(await Run(["compare", "\(folder)/none.json", "\(folder)/none.json"]).code == 65)
  }
}
