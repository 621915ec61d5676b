import FoundationEssentials
import Glibc
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands
import NetOptLocking

@Suite struct BenchCommandTests {
  @Test func theReportGoesToStandardOutput() async {
    let client = BenchFixture.client()
    let run = await BenchFixture.run([], client: client)
    #expect(run.code == 0)
    #expect(run.errors == "")
    #expect(run.output.hasPrefix("netopt bench  \(BenchFixture.url) "))
    #expect(run.output.contains("3 of 3 targets, 80 warm + 10 cold rounds"))
    #expect(run.output.contains("start-up ping chose 203.0.113.7"))
    #expect(client.probings.map(\.hosts) == [["api.example.com"]])
    #expect(client.isShutDown)
    // A first request, 10 cold ones, 2 to warm up, and 80 warm ones for each target.
    #expect(client.requests.count == 3 * 93)
  }

  @Test func theClientDoesNothingOfItsOwnBesideTheRun() async throws {
    let run = await BenchFixture.run(["-n1"])
    let configuration = try #require(run.configurations.first)
    #expect(!configuration.probing.atStart && !configuration.probing.inBackground)
    #expect(configuration.proxy == .none)
  }

  @Test func aFileGetsTheJSONAndStandardOutputTheText() async throws {
    let file = try TemporaryDirectory.make("bench") + "/run.json"
    try write("older", to: file)
    let client = BenchFixture.client { _ throws(NetOptError) in
      // Until there is a report the older one stays.
      #expect(read(file) == "older")
    }
    let run = await BenchFixture.run(["-n1", "--json=\(file)"], client: client)
    #expect(run.code == 0)
    #expect(run.output.hasPrefix("netopt bench "))
    let report = try BenchSummary(read(file))
    #expect(report.targets.count == 3 && !report.partial)
  }

  @Test func aDashIsStandardOutput() async throws {
    let run = await BenchFixture.run(["-n1", "--json=-"])
    #expect(try BenchSummary(run.output).rounds.warm == 1)
  }

  @Test func aFileThatCannotBeWrittenIsAnErrorBeforeTheRun() async throws {
    let folder = try TemporaryDirectory.make("bench")
    for file in [folder, folder + "/missing/run.json", "/dev/null/run.json"] {
      let client = BenchFixture.client()
      let run = await BenchFixture.run(["-n1", "--json=\(file)"], client: client)
      #expect(run.code == 1)
      #expect(run.errors.contains("cannot write to \(file): "))
      #expect(run.output == "" && client.requests.isEmpty && run.configurations.isEmpty)
    }
  }

  @Test func everyFileIsWritten() async throws {
    let folder = try TemporaryDirectory.make("bench")
    let run = await BenchFixture.run([
      "-n8", "--warm", "--export-json", "\(folder)/run.json", "--export-csv=\(folder)/samples.csv",
      "--export-markdown=\(folder)/table.md", "--html=\(folder)/page.html",
    ])
    #expect(run.code == 0)
    let report = try BenchSummary(read("\(folder)/run.json"))
    #expect(report.samples_path == "\(folder)/samples.csv")
    // A heading, and 8 rounds of 3 targets.
    #expect(read("\(folder)/samples.csv").split(separator: "\n").count == 25)
    #expect(read("\(folder)/table.md").contains("| `203.0.113.7` | 8/8 |"))
    #expect(read("\(folder)/page.html").hasSuffix("</html>\n"))
    #expect(run.output.hasPrefix("netopt bench "))
  }

  @Test func aFileThatFailsLosesNothing() async throws {
    let folder = try TemporaryDirectory.make("bench")
    try write("older", to: "\(folder)/run.json")
    // /dev/full takes nothing: the report is on standard output, and the other files are written.
    let run = await BenchFixture.run([
      "-n1", "--html=/dev/full", "--json=\(folder)/run.json", "--export-markdown=\(folder)/table.md",
    ])
    #expect(run.code == 1)
    #expect(run.errors.contains("cannot write to /dev/full"))
    #expect(run.output.hasPrefix("netopt bench "))
    #expect(try BenchSummary(read("\(folder)/run.json")).targets.count == 3)
    #expect(read("\(folder)/table.md").hasPrefix("| # |"))
  }

  @Test func aFileThatCannotBeBegunLeavesTheOthersAsTheyWere() async throws {
    let folder = try TemporaryDirectory.make("bench")
    try write("older", to: "\(folder)/run.json")
    let run = await BenchFixture.run([
      "-n1", "--json=\(folder)/run.json", "--html=\(folder)/missing/page.html",
    ])
    #expect(run.code == 1)
    #expect(read("\(folder)/run.json") == "older")
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["run.json"])
  }

  @Test func aMissedObjectiveShowsInTheExitCode() async throws {
    #expect(await BenchFixture.run(["-n6", "--slo", "errors<1%"]).code == 0)
    let missed = await BenchFixture.run(["-n6", "--slo", "p99<1s,errors<1%"])
    #expect(missed.code == 4)
    #expect(missed.output.contains("SLO     missed p99<1s by dns: p99 needs 368 samples"))
  }

  @Test func theDrillPutsADeadAddressFirst() async throws {
    let client = BenchFixture.client { request throws(NetOptError) in
      if request.options.routing == .pinned(BenchFixture.other) { throw Samples.error }
    }
    let run = await BenchFixture.run(["-n6", "--warm", "--drill", "--json"], client: client)
    #expect(run.code == 0)
    // One client for the run; two for each of the 12 trials.
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

  @Test func withoutADeadAddressThereIsNoDrill() async {
    let run = await BenchFixture.run(["-n2", "--warm", "--drill"])
    #expect(run.errors.contains("there is no drill"))
    let dead = BenchFixture.client { _ throws(NetOptError) in throw Samples.error }
    let nothing = await BenchFixture.run(["-n2", "--json", "--drill"], client: dead)
    #expect(nothing.code == 1 && nothing.errors.contains("there is no drill: it takes an address"))
    #expect(nothing.output.contains("\"code\":\"nothing-to-drill\""))
  }

  @Test func aReferenceThatIsNoTargetIsSaid() async throws {
    let run = await BenchFixture.run(["-n1", "--json", "--reference=192.0.2.1"])
    #expect(try BenchSummary(run.output).warnings.map(\.code) == ["no-reference"])
  }

  @Test func theCommandLineIsKeptWithoutSecrets() async throws {
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

  @Test func failuresShowInTheExitCodeWhenToldTo() async {
    let client = {
      BenchFixture.client { request throws(NetOptError) in
        if request.options.routing == .pinned(BenchFixture.other) { throw Samples.error }
      }
    }
    #expect(await BenchFixture.run(["-n1"], client: client()).code == 0)
    #expect(await BenchFixture.run(["-n1", "--strict"], client: client()).code == 3)
    #expect(await BenchFixture.run(["-n1", "--strict"]).code == 0)
  }

  @Test func aRunOfWhichNothingCameStillHasAReport() async {
    let client = BenchFixture.client { _ throws(NetOptError) in throw Samples.error }
    let run = await BenchFixture.run(["--strict"], client: client)
    #expect(run.code == 1)
    #expect(run.output.contains("Nothing was measured: no target could be used."))
    #expect(client.isShutDown)
  }

  @Test func aSignalStopsTheRunAndKeepsWhatThereIs() async throws {
    let file = try TemporaryDirectory.make("bench") + "/run.json"
    let interruption = Interruption()
    let count = Counter()
    // 3 first requests and 2 rounds of 3: the signal comes in the third round.
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

  @Test(arguments: [
    ([], ["https_proxy": "http://p:3128"], "proxy", "https_proxy"), (["-k"], [:], "unverified", "-k"),
  ])
  func circumstancesAreWarnedAbout(
    arguments: [String], environment: [String: String], code: String, text: String
  ) async throws {
    let run = await BenchFixture.run(arguments + ["-n1", "--json"], environment: environment)
    let report = try BenchSummary(run.output)
    #expect(report.warnings.map(\.code) == [code])
    #expect(run.errors.hasPrefix("netopt: warning: "))
    #expect(run.errors.contains(text))
  }

  @Test func whatIsWrongWithTheListIsSaidOnceAndKept() async throws {
    let warning = NetOptError(.invalidList, phase: .list, "the list has expired")
    let run = await BenchFixture.run(["-n1", "--json"], client: BenchFixture.client(warning: warning))
    let report = try BenchSummary(run.output)
    #expect(report.warnings.map(\.code) == ["list"])
    #expect(run.errors == "netopt: warning: the list has expired\n")
  }

  @Test func aHostThatIsNotListedIsMeasuredOverDNS() async throws {
    let run = await BenchFixture.run(["-n1"], client: BenchFixture.client(list: nil))
    #expect(run.code == 0)
    #expect(run.errors.contains("the list does not have api.example.com"))
    #expect(run.output.contains("1 of 1 targets"))
    #expect(
      await BenchFixture.run(["-n1", "--targets=ip"], client: BenchFixture.client(list: nil)).code == 1)
  }

  @Test func progressIsShownOnATerminalUnlessItIsNotWanted() async {
    let shown = await BenchFixture.run(["-n2"], columns: 80)
    #expect(shown.errors.hasPrefix("\r\u{1b}[Kcold 1/2 rounds"))
    #expect(shown.errors.hasSuffix("\r\u{1b}[K"))
    #expect(await BenchFixture.run(["-n2", "--quiet"], columns: 80).errors == "")
    // A line that is broken cannot be erased; and a terminal that cannot erase gets lines as a file does.
    let narrow = await BenchFixture.run(["-n2"], columns: 30)
    let drawn = narrow.errors.split(separator: "\r\u{1b}[K")
    #expect(!drawn.isEmpty && drawn.allSatisfy { $0.count < 30 }, "\(drawn)")
    #expect(await BenchFixture.run(["-n2"], environment: ["TERM": "dumb"], columns: 80).errors == "")
    // The report is 80 columns wide wherever it goes.
    #expect(narrow.output.split(separator: "\n").contains { (31...80).contains($0.count) })
  }

  @Test func colourIsForced() async {
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

/// The text of a file; empty when there is none.
private func read(_ file: String) -> String {
  (try? Data(contentsOf: URL(filePath: file))).map { String(decoding: $0, as: UTF8.self) } ?? ""
}

/// Counts from 1.
private final class Counter: Sendable {
  private let count = Locked(0)

  func next() -> Int {
    count.withLock { count in
      count += 1
      return count
    }
  }
}
