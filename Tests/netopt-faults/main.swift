import FaultMatrix
import FoundationEssentials
import Glibc

/// Prints a line at once, without a buffer, so that no line is lost if the program is killed.
@Sendable func say(_ text: String) { _ = write(STDOUT_FILENO, text + "\n", text.utf8.count + 1) }

/// Runs a soak and prints its report. Returns whether there were no violations.
func soak(_ options: Options) async throws -> Bool {
  let seconds = options.number("--seconds", default: 600)
  let rate = options.number("--rate", default: 200)
  let plan = SoakPlan(seed: UInt64(options.number("--seed", default: 1)), length: .seconds(seconds))
  say(
    "seed \(plan.seed), \(seconds) s, \(rate) a second, \(plan.incidents.count) faults, plan \(plan.digest)")
  let mostP99 = options.values["--most-p99"].map { _ in
    Duration.milliseconds(options.number("--most-p99", default: 1))
  }
  let report = try await Soak.perform(plan, rate: rate, mostP99: mostP99, said: say)
  say(report.description)
  return report.violations.isEmpty
}

/// The cells of the given faults that `--sample` and `--only` select; all of them without these options.
func cells(_ options: Options, of faults: [Fault]) -> [Cell] {
  let cells =
    options.values["--sample"] == nil
    ? Cell.all(of: faults) : Cell.sample(options.number("--sample", default: 1), of: faults)
  guard let only = options.values["--only"] else { return cells }
  let words = only.split(separator: ",").map { String($0) }
  let chosen = cells.filter { cell in words.allSatisfy { cell.description.contains($0) } }
  guard !chosen.isEmpty else { complain("netopt-faults: the name of no cell contains \(only)") }
  return chosen
}

/// Runs the selected cells and prints their results. Returns whether no cell had violations.
func runCells(_ options: Options) async throws -> Bool {
  // With more than one job, each child process enters a network namespace of its own, and this process needs
  // none. Otherwise this process enters one if it may.
  let jobs = options.number("--jobs", default: 1)
  let hasOwnNetwork = jobs > 1 ? MatrixRun.mayEnterNetwork : await MatrixRun.enterNetwork()
  guard hasOwnNetwork || jobs == 1 && options.share == nil else {
    complain(
      "netopt-faults: --jobs takes root that may make networks (CAP_SYS_ADMIN): each process needs one of its own; use --jobs 1"
    )
  }
  let all = cells(options, of: Fault.all.filter { hasOwnNetwork || !$0.needsOwnNetwork })
  if options.flags.contains("--list") {
    for cell in all { say(cell.description) }
    return true
  }
  // Collects the results, and writes the table for `--write`.
  var record = MatrixRecord(file: options.values["--write"])
  if !hasOwnNetwork {
    say("No network of its own, which takes root: cells with a wire or without a route are left out.")
  }
  say(VerdictTable.head)
  func add(_ result: CellResult, at index: Int) throws {
    for line in result.lines { say(line) }
    try record.add(result, at: index)
  }
  if jobs > 1 {
    let run = try SharedRun(count: jobs, arguments: options.argumentsOfShares)
    try await run.results(cells: all.count, done: add)
  } else {
    // The indices in `all` of this process's share; `nil` when it runs all cells.
    let indices = options.share.map { SharedRun.indices(ofShare: $0.part, of: $0.count, cells: all.count) }
    let own = indices.map { $0.map { all[$0] } } ?? all
    var index = 0
    try await MatrixRun.run(own, isShort: options.flags.contains("--short")) { cell, verdict in
      try add(CellResult(cell, verdict), at: index)
      index += 1
    }
  }
  say(record.summary)
  return record.violated == 0
}

let options = Options(CommandLine.arguments.dropFirst())
if options.asksForHelp {
  say(Options.usage)
  exit(0)
}
do {
  let isRight = options.isSoak ? try await soak(options) : try await runCells(options)
  exit(isRight ? 0 : 1)
} catch {
  complain("netopt-faults: \(error)", code: 2)
}
