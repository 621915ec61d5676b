import FoundationEssentials
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

/// The lab, and bench in it: the truth is known there.
@Suite(.enabled("the lab takes root, ip(8), vde2, iptables, nginx and dnsmasq") { Lab.isPossible })
struct LabTests {
  @Test(.enabled("\(JSONSchema.missing)") { try await JSONSchema.isInstalled() })
  func benchFindsTheTruth() async throws {
    let run = try await Lab.with(["near:rtt=5", "far:rtt=40,dns=yes", "bad:rtt=5,fault=certificate"]) { lab in
      // Two targets that are alike differ in one run of twenty; what a busy machine adds to either is no fifth of it.
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
    // A round trip on a kept connection, three on a new one. Machines that are busy take longer, none is faster than light.
    for (target, trip) in [(near, 5.0), (far, 40)] {
      let warm = try #require(target.warm?.median)
      let cold = try #require(target.cold?.median)
      #expect(warm > trip * 0.9 && warm < trip + 15, "\(warm)")
      #expect(cold > trip * 2.7 && cold < 3 * trip + 40, "\(cold)")
      #expect((target.cold?.tcp_info?.rtt_us.n ?? 0) == 12)
    }
    // The wrong certificate is seen after two round trips to the address in front.
    let drill = try #require(report.drill?.first)
    #expect(drill.code == "certificate-name" && drill.failed == 0 && drill.trials.count == 12)
    #expect((drill.added_us ?? 0) > 8_000 && (drill.added_us ?? 0) < 100_000)
  }

  @Test func anOriginChangesWhileItRuns() async throws {
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

  @Test func whatIsNoOriginIsRefused() async throws {
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

/// A lab of a test's own.
private final class Lab: Sendable {
  private let directory: String
  private let processes: [Int32]
  private let options: [String]

  static var isPossible: Bool {
    let programs = ["/usr/bin/wirefilter", "/usr/bin/vde_switch", "/usr/sbin/iptables", "/usr/sbin/nginx"]
    return NetworkNamespace.isAvailable && programs.allSatisfy(FileManager.default.isExecutableFile)
  }

  /// Starts a lab, works with it, and ends it however the work ends.
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

  /// Ends it, and says whether everything that it started is gone.
  private func end() async throws -> Bool {
    let down = try await Self.run(["down"], in: directory)
    #expect(down.status == 0, "\(down.output)")
    // One that has ended may stay until init looks (proc(5): the state behind the name).
    return processes.allSatisfy { id in (try? Files.read("/proc/\(id)/stat").contains(") Z ")) ?? true }
  }

  static func run(_ arguments: [String], in directory: String) async throws -> (
    status: Int32?, output: String
  ) {
    let output = try TemporaryDirectory.make("lab-output")
    // What it says on standard error is not among its data, unless it failed.
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
