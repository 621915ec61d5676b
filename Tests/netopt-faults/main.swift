import FaultMatrix
import FoundationEssentials
import Glibc

/// Prints a line at once, so that it is there even when the program is killed.
@Sendable func say(_ text: String) { _ = write(STDOUT_FILENO, text + "\n", text.utf8.count + 1) }

/// Performs a soak, and returns whether nothing is wrong.
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

/// Runs cells, and returns whether nothing is wrong.
func runCells(_ options: Options) async throws -> Bool {
  let hasOwnNetwork = await MatrixRun.enterNetwork()
  let faults = Fault.all.filter { hasOwnNetwork || !$0.needsOwnNetwork }
  var cells =
    options.values["--sample"] == nil
    ? Cell.all(of: faults) : Cell.sample(options.number("--sample", default: 1), of: faults)
  if let only = options.values["--only"] {
    let words = only.split(separator: ",").map { String($0) }
    cells = cells.filter { cell in words.allSatisfy { cell.description.contains($0) } }
    guard !cells.isEmpty else { complain("netopt-faults: the name of no cell contains \(only)") }
  }
  if options.flags.contains("--list") {
    for cell in cells { say(cell.description) }
    return true
  }
  var record = MatrixRecord(file: options.values["--write"])
  if !hasOwnNetwork {
    say("No network of its own, which takes root: cells with a wire or without a route are left out.")
  }
  say(VerdictTable.head)
  try await MatrixRun.run(cells, isShort: options.flags.contains("--short")) { cell, verdict in
    say(VerdictTable.row(cell, verdict))
    for line in record.add(cell, verdict) { say(line) }
    try record.write()
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
