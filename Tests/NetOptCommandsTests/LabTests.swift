import FoundationEssentials
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

/// Tests of the lab, and of `netopt bench` in it. The lab sets the round-trip times and the faults, so the
/// right result is known.
@Suite(.enabled("the lab takes root, ip(8), vde2, iptables, nginx and dnsmasq") { Lab.isPossible })
struct LabTests {
  @Test(
    "bench in a lab ranks the origins by distance, excludes the faulty one and measures the drill",
    .enabled("\(JSONSchema.missing)") { try await JSONSchema.isInstalled() })
  func benchResult() async throws {
    let run = try await Lab.with(["near:rtt=5", "far:rtt=40,dns=yes", "bad:rtt=5,fault=certificate"]) { lab in
      // By chance, two equal targets differ significantly in 1 of 20 runs. The load of a busy machine adds
      // less than 20 % to either, so `--min-effect=20` ignores such differences.
      try await lab.bench(["-n", "12", "--json", "--drill", "--min-effect=20"])
    }
    #expect(run.status == 0, "\(run.output)")
    #expect(try await JSONSchema.faults(of: run.output, by: "bench") == "")
    let report = try JSONDecoder().decode(Report.self, from: Data(run.output.utf8))
    let targets = Dictionary(uniqueKeysWithValues: report.targets.map { ($0.region ?? $0.id, $0) })
    let near = try #require(targets["near"])
    let far = try #require(targets["far"])
    #expect(near.rank == 1 && far.rank == 2 && targets["dns"]?.rank == 2)
    #expect(targets["bad"]?.excluded?.code == "certificate-name")
    // A request takes 1 round trip on an open connection and 3 round trips on a new one. A busy machine adds
    // time. No machine is faster than the set round-trip time.
    for (target, trip) in [(near, 5.0), (far, 40)] {
      let warm = try #require(target.warm?.median)
      let cold = try #require(target.cold?.median)
      #expect(warm > trip * 0.9 && warm < trip + 15, "\(warm)")
      #expect(cold > trip * 2.7 && cold < 3 * trip + 40, "\(cold)")
      #expect((target.cold?.tcp_info?.rtt_us.n ?? 0) == 12)
    }
    // The client sees the wrong certificate after 2 round trips to the first address.
    let drill = try #require(report.drill?.first)
    #expect(drill.code == "certificate-name" && drill.failed == 0 && drill.trials.count == 12)
    #expect((drill.added_us ?? 0) > 8_000 && (drill.added_us ?? 0) < 100_000)
  }

  @Test("the ranking of bench follows an origin whose delay or fault changes while the lab runs")
  func changedOrigin() async throws {
    let (before, after, refused) = try await Lab.with(["one:rtt=5", "two:rtt=30"]) { lab in
      let before = try await lab.bench(["-n", "8", "--warm", "--targets=ip", "--json"])
      try await lab.set("one", "rtt=60")
      let after = try await lab.bench(["-n", "8", "--warm", "--targets=ip", "--json"])
      try await lab.set("one", "fault=refuse")
      return (before, after, try await lab.bench(["-n", "6", "--warm", "--targets=ip", "--json"]))
    }
    func ranks(_ run: (status: Int32?, output: String)) throws -> [Int?] {
      try JSONDecoder().decode(Report.self, from: Data(run.output.utf8)).targets.map(\.rank)
    }
    #expect(try ranks(before) == [1, 2])
    #expect(try ranks(after) == [2, 1])
    #expect(try ranks(refused) == [nil, 1])
  }

  @Test("the lab refuses an origin with an invalid option")
  func invalidOrigin() async throws {
    let run = try await Lab.run(["up", "near:rtt=soon"], in: try TemporaryDirectory.make("lab") + "/lab")
    #expect(run.status != 0 && run.output.contains("is no option of an origin"))
    let short = try await Lab.run(
      ["up", "near:rtt=2.5"], in: try TemporaryDirectory.make("lab") + "/lab")
    #expect(short.status != 0 && short.output.contains("is no option of an origin"))
  }

  private struct Report: Decodable {
    struct Entry: Decodable { var p: Double, value: Int? }
    struct Count: Decodable { var n: Int }
    struct Response: Decodable { var percentiles: [Entry] }
    struct Socket: Decodable { var rtt_us: Count }
    struct Block: Decodable {
      var response_us: Response
      var tcp_info: Socket?
      var median: Double? { response_us.percentiles.first { $0.p == 50 }?.value.map { Double($0) / 1000 } }
    }
    struct Exclusion: Decodable { var code: String }
    struct Target: Decodable {
      var id: String
      var region: String?
      var rank: Int?
      var excluded: Exclusion?
      var cold: Block?
      var warm: Block?
    }
    struct Trial: Decodable { var affected: Int }
    struct Drill: Decodable { var code: String, failed: Int, added_us: Double?, trials: [Trial] }
    var targets: [Target]
    var drill: [Drill]?
  }
}

/// A lab that one test starts.
private final class Lab: Sendable {
  private let directory: String
  private let processes: [Int32]
  private let options: [String]

  static var isPossible: Bool {
    let programs = ["/usr/bin/wirefilter", "/usr/bin/vde_switch", "/usr/sbin/iptables", "/usr/sbin/nginx"]
    return NetworkNamespace.isAvailable && programs.allSatisfy(FileManager.default.isExecutableFile)
  }

  /// Starts a lab, runs `work` with it, and ends the lab even if `work` throws.
  static func with<Result: Sendable>(
    _ origins: [String], _ work: (Lab) async throws -> Result
  ) async throws -> Result {
    let lab = try await Lab(origins)
    do {
      let result = try await work(lab)
      let isGone = try await lab.end()
      #expect(isGone, "the lab left processes behind")
      return result
    } catch {
      _ = try? await lab.end()
      throw error
    }
  }

  private init(_ origins: [String]) async throws {
    directory = try TemporaryDirectory.make("lab") + "/lab"
    let up = try await Self.run(["up"] + origins, in: directory)
    try #require(up.status == 0, "\(up.output)")
    do {
      let status = try await Self.run(["status"], in: directory).output
      let state = try JSONDecoder().decode(State.self, from: Data(status.utf8))
      try #require(state.emulates)
      processes = state.processes.map(\.pid)
      options = state.options
    } catch {
      _ = try? await Self.run(["down"], in: directory)
      throw error
    }
  }

  private struct State: Decodable {
    struct Process: Decodable { var pid: Int32 }
    var processes: [Process]
    var options: [String]
    var emulates: Bool
  }

  func bench(_ more: [String]) async throws -> (status: Int32?, output: String) {
    try await Self.run(["run", try Files.program, "bench", "--quiet"] + options + more, in: directory)
  }

  func set(_ origin: String, _ option: String) async throws {
    let run = try await Self.run(["set", origin, option], in: directory)
    #expect(run.status == 0, "\(run.output)")
  }

  /// Ends the lab. Returns whether all processes that the lab started are gone.
  private func end() async throws -> Bool {
    let down = try await Self.run(["down"], in: directory)
    #expect(down.status == 0, "\(down.output)")
    // A process that has ended may remain as a zombie until init reaps it. In proc(5), the state follows the
    // name.
    return processes.allSatisfy { id in (try? Files.read("/proc/\(id)/stat").contains(") Z ")) ?? true }
  }

  static func run(_ arguments: [String], in directory: String) async throws -> (
    status: Int32?, output: String
  ) {
    let output = try TemporaryDirectory.make("lab-output")
    // The script's standard error is not part of its output unless the script fails.
    let line = "\"$@\" 2>\"$0\"; code=$?; [ $code = 0 ] || cat \"$0\"; exit $code"
    let child = try ChildProcess(
      "/bin/sh",
      [
        "-c", line, "\(output)/errors", "/usr/bin/env", "LAB_DIRECTORY=\(directory)",
        RepositoryFile.path("Tests/Lab/lab"),
      ] + arguments, in: output)
    try await wait(for: "the lab to end", within: .seconds(120)) { child.exitStatus() != nil }
    return (child.exitStatus(), try Files.read(child.output))
  }
}
