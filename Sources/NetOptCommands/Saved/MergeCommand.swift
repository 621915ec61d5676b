import NetOptBench
import NetOptCore

/// `netopt merge`: adds up the histograms of saved runs.
struct MergeCommand: Command {
  let declaration = CommandDeclaration(
    name: "merge",
    summary: "merge saved runs of bench, for example from several machines",
    details: """
      Adds up the histograms of saved runs, written by netopt bench --json or netopt merge, for each target, \
      and prints the percentiles. The percentiles of a merged run have three significant digits. With \
      --json, merge prints the sum in a format that compare and merge can read.

      merge does not rank the targets, because the runs have no common rounds to compare them in.
      """,
    operands: "RUN...", operandCount: 1...1000, options: [OptionGroup("Output", [.json])],
    examples: [
      .init("netopt merge --json berlin.json oslo.json > all.json", "merges the measurements of two machines")
    ])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    let first = try context.savedRun(arguments.operands[0])
    var merged = MergedRun(first)
    var urls: Set = [first.url]
    // A run may be large, so only one run and the sum are in memory at a time. The sum does not grow with the
    // number of runs.
    for file in arguments.operands.dropFirst() {
      let run = try context.savedRun(file)
      urls.insert(run.url)
      do throws(SavedRun.Fault) {
        try merged.add(run)
      } catch {
        throw NetOptError(.unreadableFile, phase: .list, "\(file): \(error)")
      }
    }
    let counts = Dictionary(merged.run.runs.map { ($0, 1) }, uniquingKeysWith: +)
    for name in counts.filter({ $0.value > 1 }).keys.sorted() {
      context.say("warning: the run \(name) is given more than once and counts each time")
    }
    if urls.count > 1 {
      context.say("warning: the runs requested different URLs: \(urls.sorted().joined(separator: ", "))")
    }
    if arguments.has(.json) { try context.print(merged.json) } else { try context.output.write(merged.text) }
    return .ok
  }
}
