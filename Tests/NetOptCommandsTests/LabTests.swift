import FoundationEssentials
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

/// Tests of the lab (`Tests/Lab/lab`), and of `netopt bench` in the lab. The lab is a network on this
/// machine: a client and origins in network namespaces, whose links delay frames. The test sets the
/// round-trip times and the faults of the origins, so the right result is known.
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
    // The drill measures how much an address that `bench` excluded delays the first call of a new client. The
    // client gets the wrong certificate after 2 round trips of 5 ms.
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

  /// The members of the JSON report of `bench` that the tests read.
  private struct Report: Decodable {
    /// A percentile of a distribution: `p` in percent, `value` in microseconds.
    struct Entry: Decodable { var p: Double, value: Int? }
    /// A distribution. The tests read only the number of its samples.
    struct Count: Decodable { var n: Int }
    struct Response: Decodable { var percentiles: [Entry] }
    /// The round-trip times that the kernel measured on new connections (TCP_INFO).
    struct Socket: Decodable { var rtt_us: Count }
    /// The requests to a target on new connections (cold) or on open connections (warm).
    struct Block: Decodable {
      var response_us: Response
      var tcp_info: Socket?
      /// The median response time in milliseconds; `nil` if there are too few samples.
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
    /// A trial of the drill. `affected` is the number of calls that tried the dead address.
    struct Trial: Decodable { var affected: Int }
    /// The drill with one dead address. `code` says why the address is dead. `failed` is the number of first
    /// calls that failed. `added_us` is the delay that the address adds to the first call, in microseconds.
    struct Drill: Decodable { var code: String, failed: Int, added_us: Double?, trials: [Trial] }
    var targets: [Target]
    var drill: [Drill]?
  }
}

/// A lab that one test starts. The test controls it with the script `Tests/Lab/lab`.
private final class Lab: Sendable {
  /// The directory of the lab's state (`LAB_DIRECTORY`).
  private let directory: String
  /// The ids of the processes that the lab started.
  private let processes: [Int32]
  /// The arguments with which `bench` measures the lab's origins: the URL, the list, the certificate
  /// authority and the DNS server.
  private let options: [String]

  /// Whether this machine can run a lab with real round-trip times.
  static var isPossible: Bool {
    let programs = ["/usr/bin/wirefilter", "/usr/bin/vde_switch", "/usr/sbin/iptables", "/usr/sbin/nginx"]
    return NetworkNamespace.isAvailable && programs.allSatisfy(FileManager.default.isExecutableFile)
  }

  /// Starts a lab with these origins, runs `work` with it, and ends the lab even if `work` throws. An origin
  /// is NAME:OPTION=VALUE,…, such as `near:rtt=5` for a round-trip time of 5 ms.
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

  /// The output of `lab status`. `emulates` says whether links delay the frames. If not, the origins are
  /// loopback addresses.
  private struct State: Decodable {
    struct Process: Decodable { var pid: Int32 }
    var processes: [Process]
    var options: [String]
    var emulates: Bool
  }

  /// Runs `netopt bench` in the client's network. Returns the exit status in the form of waitpid(2), and the
  /// output.
  func bench(_ more: [String]) async throws -> (status: Int32?, output: String) {
    try await Self.run(["run", try Files.program, "bench", "--quiet"] + options + more, in: directory)
  }

  /// Changes an option of an origin while the lab runs: `set("near", "rtt=60")`.
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

  /// Runs the script of the lab. Returns its exit status in the form of waitpid(2), and its output.
  ///
  /// - Parameter directory: the directory of the lab's state.
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
