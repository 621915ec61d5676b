import NetOptBench
import NetOptCore

/// `netopt merge`: the histograms of saved runs added up.
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
    var runs: [SavedRun] = []
    for file in arguments.operands { runs.append(try context.savedRun(file)) }
    let names = runs.flatMap(\.runs)
    for name in Set(names).sorted() where names.count(where: { $0 == name }) > 1 {
      context.say("warning: the run \(name) is there more than once, and counts as often")
    }
    let urls = Set(runs.map(\.url)).sorted()
    if urls.count > 1 {
      context.say("warning: the runs requested different URLs: \(urls.joined(separator: ", "))")
    }
    let merged = MergedRun(runs)
    if arguments.has(.json) { try context.print(merged.json) } else { try context.output.write(merged.text) }
    return .ok
  }
}
