import FoundationEssentials
import Glibc
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands
import NetOptLocking

@Suite struct BenchCommandTests {
  @Test("bench prints the report on standard output after 93 requests for each of 3 targets")
  func report() async {
    let client = BenchFixture.client()
    let run = await BenchFixture.run([], client: client)
    #expect(run.code == 0)
    #expect(run.errors == "")
    #expect(run.output.hasPrefix("netopt bench  \(BenchFixture.url) "))
    #expect(run.output.contains("3 of 3 targets, 80 warm + 10 cold rounds"))
    #expect(run.output.contains("start-up ping chose 203.0.113.7"))
    #expect(client.probings.map(\.hosts) == [["api.example.com"]])
    #expect(client.isShutDown)
    // Each target gets 1 first request, 10 cold requests, 2 warm-up requests and 80 warm requests.
    #expect(client.requests.count == 3 * 93)
  }

  @Test("the client of bench sends no probes of its own and uses no proxy")
  func quietClient() async throws {
    let run = await BenchFixture.run(["-n1"])
    let configuration = try #require(run.configurations.first)
    #expect(!configuration.probing.atStart && !configuration.probing.inBackground)
    #expect(configuration.proxy == .none)
  }

  @Test("bench --json=FILE replaces the file with JSON at the end and prints the text")
  func jsonFile() async throws {
    let file = try TemporaryDirectory.make("bench") + "/run.json"
    try write("older", to: file)
    let client = BenchFixture.client { _ throws(NetOptError) in
      // The old file stays until the report is complete.
      #expect(read(file) == "older")
    }
    let run = await BenchFixture.run(["-n1", "--json=\(file)"], client: client)
    #expect(run.code == 0)
    #expect(run.output.hasPrefix("netopt bench "))
    let report = try BenchSummary(read(file))
    #expect(report.targets.count == 3 && !report.partial)
  }

  @Test("bench --json=- prints the JSON on standard output")
  func jsonOnStandardOutput() async throws {
    let run = await BenchFixture.run(["-n1", "--json=-"])
    #expect(try BenchSummary(run.output).rounds.warm == 1)
  }

  @Test("bench fails before its first request if it cannot write the JSON file")
  func unwritableFile() async throws {
    let folder = try TemporaryDirectory.make("bench")
    for file in [folder, folder + "/missing/run.json", "/dev/null/run.json"] {
      let client = BenchFixture.client()
      let run = await BenchFixture.run(["-n1", "--json=\(file)"], client: client)
      #expect(run.code == 1)
      #expect(run.errors.contains("cannot write to \(file): "))
      #expect(run.output == "" && client.requests.isEmpty && run.configurations.isEmpty)
    }
  }

  @Test("bench writes the JSON, CSV, Markdown and HTML files and prints the report")
  func exports() async throws {
    let folder = try TemporaryDirectory.make("bench")
    let run = await BenchFixture.run([
      "-n8", "--warm", "--export-json", "\(folder)/run.json", "--export-csv=\(folder)/samples.csv",
      "--export-markdown=\(folder)/table.md", "--html=\(folder)/page.html",
    ])
    #expect(run.code == 0)
    let report = try BenchSummary(read("\(folder)/run.json"))
    #expect(report.samples_path == "\(folder)/samples.csv")
    // One heading, and 8 rounds with 3 targets each.
    #expect(read("\(folder)/samples.csv").split(separator: "\n").count == 25)
    #expect(read("\(folder)/table.md").contains("| `203.0.113.7` | 8/8 |"))
    #expect(read("\(folder)/page.html").hasSuffix("</html>\n"))
    #expect(run.output.hasPrefix("netopt bench "))
  }

  @Test("bench prints the report and writes the other files when one write fails")
  func fullDevice() async throws {
    let folder = try TemporaryDirectory.make("bench")
    try write("older", to: "\(folder)/run.json")
    // Every write to /dev/full fails.
    let run = await BenchFixture.run([
      "-n1", "--html=/dev/full", "--json=\(folder)/run.json", "--export-markdown=\(folder)/table.md",
    ])
    #expect(run.code == 1)
    #expect(run.errors.contains("cannot write to /dev/full"))
    #expect(run.output.hasPrefix("netopt bench "))
    #expect(try BenchSummary(read("\(folder)/run.json")).targets.count == 3)
    #expect(read("\(folder)/table.md").hasPrefix("| # |"))
  }

  @Test("bench leaves all files unchanged if it cannot create one of them")
  func missingFolder() async throws {
    let folder = try TemporaryDirectory.make("bench")
    try write("older", to: "\(folder)/run.json")
    let run = await BenchFixture.run([
      "-n1", "--json=\(folder)/run.json", "--html=\(folder)/missing/page.html",
    ])
    #expect(run.code == 1)
    #expect(read("\(folder)/run.json") == "older")
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["run.json"])
  }

  @Test("bench exits with code 4 when a target misses an SLO, and names it")
  func missedObjective() async throws {
    #expect(await BenchFixture.run(["-n6", "--slo", "errors<1%"]).code == 0)
    let missed = await BenchFixture.run(["-n6", "--slo", "p99<1s,errors<1%"])
    #expect(missed.code == 4)
    #expect(missed.output.contains("SLO     missed p99<1s by dns: p99 needs 368 samples"))
  }

  @Test("bench --drill runs trials with a list whose first address is dead, and reports them")
  func drill() async throws {
    let client = BenchFixture.client { request throws(NetOptError) in
      if request.options.routing == .pinned(BenchFixture.other) { throw Samples.error }
    }
    let run = await BenchFixture.run(["-n6", "--warm", "--drill", "--json"], client: client)
    #expect(run.code == 0)
    // The run has 1 client, and each of the 12 trials has 2 clients. In the first trial, the client without
    // the dead address comes first. So the configurations 1 and 2 belong to the first trial.
    #expect(run.configurations.count == 25)
    guard case .list(let list) = run.configurations[2].list else {
      Issue.record("the drill has no list of its own")
      return
    }
    #expect(
      list.hosts["api.example.com"]?.endpoints.map(\.address) == [BenchFixture.other, BenchFixture.address])
    #expect(run.configurations[2].probing.inBackground)
    guard case .list(let usual) = run.configurations[1].list else { return }
    #expect(usual.hosts["api.example.com"]?.endpoints.map(\.address) == [BenchFixture.address])
    #expect(run.output.contains("\"drill\":[{\"ip\":\"2001:db8::7\""))
    let text = await BenchFixture.run(["-n6", "--warm", "--drill"], client: client)
    #expect(text.output.contains("DRILL   2001:db8::7 first: "))
    #expect(text.output.split(separator: "\n").allSatisfy { $0.count <= 80 })
  }

  @Test("bench --drill warns that there is no drill if no address or every address is dead")
  func noDrill() async {
    let run = await BenchFixture.run(["-n2", "--warm", "--drill"])
    #expect(run.errors.contains("there is no drill"))
    let dead = BenchFixture.client { _ throws(NetOptError) in throw Samples.error }
    let nothing = await BenchFixture.run(["-n2", "--json", "--drill"], client: dead)
    #expect(nothing.code == 1 && nothing.errors.contains("there is no drill: it needs an address"))
    #expect(nothing.output.contains("\"code\":\"nothing-to-drill\""))
  }

  @Test("bench warns about a --reference that is no target")
  func unknownReference() async throws {
    let run = await BenchFixture.run(["-n1", "--json", "--reference=192.0.2.1"])
    #expect(try BenchSummary(run.output).warnings.map(\.code) == ["no-reference"])
  }

  @Test("the report keeps the command line without secret header values and bodies")
  func argumentsWithoutSecrets() async throws {
    let run = await BenchFixture.run([
      "-n1", "--json", "-HAuthorization: Bearer s3cret", "--header=Accept: text/plain", "-kd",
      "password=s3cret",
    ])
    let report = try BenchSummary(run.output)
    #expect(
      report.argv == [
        "bench", "--rounds=1", "--json", "--header=Authorization: ...", "--header=Accept: text/plain",
        "--insecure", "--data=...", BenchFixture.url,
      ])
    #expect(!run.output.contains("s3cret"))
  }

  @Test("bench exits with code 3 for a failed target only with --strict")
  func strict() async {
    let client = {
      BenchFixture.client { request throws(NetOptError) in
        if request.options.routing == .pinned(BenchFixture.other) { throw Samples.error }
      }
    }
    #expect(await BenchFixture.run(["-n1"], client: client()).code == 0)
    #expect(await BenchFixture.run(["-n1", "--strict"], client: client()).code == 3)
    #expect(await BenchFixture.run(["-n1", "--strict"]).code == 0)
  }

  @Test("bench prints a report and exits with code 1 when every request fails")
  func nothingMeasured() async {
    let client = BenchFixture.client { _ throws(NetOptError) in throw Samples.error }
    let run = await BenchFixture.run(["--strict"], client: client)
    #expect(run.code == 1)
    #expect(run.output.contains("Nothing was measured: no target could be used."))
    #expect(client.isShutDown)
  }

  @Test("SIGINT stops bench, which saves a partial report and exits with code 130")
  func signal() async throws {
    let file = try TemporaryDirectory.make("bench") + "/run.json"
    let interruption = Interruption()
    let count = Counter()
    // There are 3 first requests and 2 rounds of 3 requests. The signal arrives in the third round.
    let client = BenchFixture.client { _ throws(NetOptError) in
      if count.next() == 3 + 6 + 2 { interruption.receive(SIGINT) }
    }
    let run = await BenchFixture.run(["--json=\(file)"], client: client, interruption: interruption)
    #expect(run.code == 130)
    #expect(run.output.contains("PARTIAL: interrupted"))
    let report = try BenchSummary(read(file))
    #expect(report.partial && report.stop_reason == "interrupted")
    #expect(report.rounds.cold == 2)
    #expect(client.requests.count == 11 && client.isShutDown)
  }

  @Test(
    "bench warns about a proxy in the environment and about -k",
    arguments: [
      ([], ["https_proxy": "http://p:3128"], "proxy", "https_proxy"), (["-k"], [:], "unverified", "-k"),
    ])
  func circumstances(
    arguments: [String], environment: [String: String], code: String, text: String
  ) async throws {
    let run = await BenchFixture.run(arguments + ["-n1", "--json"], environment: environment)
    let report = try BenchSummary(run.output)
    #expect(report.warnings.map(\.code) == [code])
    #expect(run.errors.hasPrefix("netopt: warning: "))
    #expect(run.errors.contains(text))
  }

  @Test("bench prints the warning about the list once and keeps it in the report")
  func listWarning() async throws {
    let warning = NetOptError(.invalidList, phase: .list, "the list has expired")
    let run = await BenchFixture.run(["-n1", "--json"], client: BenchFixture.client(warning: warning))
    let report = try BenchSummary(run.output)
    #expect(report.warnings.map(\.code) == ["list"])
    #expect(run.errors == "netopt: warning: the list has expired\n")
  }

  @Test("bench measures a host that is not in the list over DNS, and fails with --targets=ip")
  func unlistedHost() async throws {
    let run = await BenchFixture.run(["-n1"], client: BenchFixture.client(list: nil))
    #expect(run.code == 0)
    #expect(run.errors.contains("the IP list does not contain api.example.com"))
    #expect(run.output.contains("1 of 1 targets"))
    #expect(
      await BenchFixture.run(["-n1", "--targets=ip"], client: BenchFixture.client(list: nil)).code == 1)
  }

  @Test("bench redraws a progress line that fits a terminal, but not with --quiet or TERM=dumb")
  func progress() async {
    let shown = await BenchFixture.run(["-n2"], columns: 80)
    #expect(shown.errors.hasPrefix("\r\u{1b}[Kcold 1/2 rounds"))
    #expect(shown.errors.hasSuffix("\r\u{1b}[K"))
    #expect(await BenchFixture.run(["-n2", "--quiet"], columns: 80).errors == "")
    // The line must be shorter than the terminal is wide: the command could not erase a line that the
    // terminal wraps.
    let narrow = await BenchFixture.run(["-n2"], columns: 30)
    let drawn = narrow.errors.split(separator: "\r\u{1b}[K")
    #expect(!drawn.isEmpty && drawn.allSatisfy { $0.count < 30 }, "\(drawn)")
    // A dumb terminal cannot erase a line. It gets a new line every 10 s, as a file does. This run is
    // shorter.
    #expect(await BenchFixture.run(["-n2"], environment: ["TERM": "dumb"], columns: 80).errors == "")
    // The width of the terminal does not change the report, which is up to 80 columns wide.
    #expect(narrow.output.split(separator: "\n").contains { (31...80).contains($0.count) })
  }

  @Test("FORCE_COLOR makes the report coloured, and --no-color overrides it")
  func colour() async {
    let client = {
      BenchFixture.client { request throws(NetOptError) in
        if request.options.routing == .dns { throw Samples.error }
      }
    }
    #expect(await BenchFixture.run(["-n1"], client: client()).output.contains("\u{1b}") == false)
    let forced = ["FORCE_COLOR": "1"]
    #expect(
      await BenchFixture.run(["-n1"], client: client(), environment: forced).output.contains("\u{1b}[31m"))
    let refused = await BenchFixture.run(["-n1", "--no-color"], client: client(), environment: forced)
    #expect(!refused.output.contains("\u{1b}"))
  }
}

private func write(_ text: String, to file: String) throws {
  try Data(text.utf8).write(to: URL(filePath: file))
}

/// The text of a file, or an empty text if the file cannot be read.
private func read(_ file: String) -> String {
  (try? Data(contentsOf: URL(filePath: file))).map { String(decoding: $0, as: UTF8.self) } ?? ""
}

/// A counter that starts at 1.
private final class Counter: Sendable {
  private let count = Locked(0)

  func next() -> Int {
    count.withLock { count in
      count += 1
      return count
    }
  }
}
