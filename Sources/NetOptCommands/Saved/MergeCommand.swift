import NetOptBench
import NetOptCore

/// `netopt merge`: adds up the histograms of saved runs.
struct MergeCommand: Command {
  let declaration = CommandDeclaration(
    name: "merge",
    summary: "add up saved runs of bench, from several machines for instance",
    details: """
      Adds the histograms of runs that netopt bench --json or netopt merge has written, target by target, and prints their \
      percentiles, which have three digits then. With --json the sum is printed in a form that compare and merge read again.

      Targets are not ranked: the runs have no rounds in common in which they could be compared.
      """,
    operands: "RUN...", operandCount: 1...1000, options: [OptionGroup("Output", [.json])],
    examples: [
      .init("netopt merge --json berlin.json oslo.json > all.json", "adds up what two machines measured")
    ])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    let first = try context.savedRun(arguments.operands[0])
    var merged = MergedRun(first)
    var urls: Set = [first.url]
    // Reads one run at a time, because a run may be large. The sum does not grow with the number of runs.
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
      context.say("warning: the run \(name) is there more than once, and counts as often")
    }
    if urls.count > 1 {
      context.say("warning: the runs requested different URLs: \(urls.sorted().joined(separator: ", "))")
    }
    if arguments.has(.json) { try context.print(merged.json) } else { try context.output.write(merged.text) }
    return .ok
  }
}
