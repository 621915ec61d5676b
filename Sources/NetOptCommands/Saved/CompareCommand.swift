import NetOptBench
import NetOptCore

/// `netopt compare`: compares two saved runs.
struct CompareCommand: Command {
  private static let alpha = Option(
    "alpha", takes: .required("P"),
    "how often a difference may be called significant that is none, 0.0001 to 0.5; default: 0.05")
  private static let minimumEffect = Option(
    "min-effect", takes: .required("PERCENT"),
    "the smallest difference of medians that is called significant, 0 to 100 %; default: 1")

  let declaration = CommandDeclaration(
    name: "compare",
    summary: "compare two saved runs of bench",
    details: """
      Compares what each target's requests took in two runs that netopt bench --json or netopt merge has written, by the \
      rank-sum test, which allows for requests that depend on those before them, and the shares of requests that failed. p \
      values allow for the number of all these questions.

      The runs were not interleaved, so a difference may be the network's as well as the servers': within a run bench \
      measures targets round by round, which no two runs can be afterwards. Exits with 5 when a target is slower or \
      fails more often in the second run, and that is no chance, or when it was left out there, or has no median any more \
      although enough requests were sent.
      """,
    operands: "BEFORE AFTER", operandCount: 2...2,
    options: [OptionGroup("Comparing", [alpha, minimumEffect]), OptionGroup("Output", [.json])],
    examples: [
      .init(
        "netopt compare monday.json tuesday.json",
        "shows the medians, and fails with 5 when one became slower")
    ])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    let alpha = try arguments.number(Self.alpha, in: 0.000_1...0.5) ?? 0.05
    let effect = try arguments.number(Self.minimumEffect, in: 0...100) ?? 1
    let before = try context.savedRun(arguments.operands[0])
    let after = try context.savedRun(arguments.operands[1])
    if before.url != after.url {
      context.say("warning: the runs requested different URLs: \(before.url) and \(after.url)")
    }
    for (run, file) in zip([before, after], arguments.operands) where run.isPartial {
      context.say("warning: \(file) is of a run that ended before its time")
    }
    let comparison = RunComparison(before, after, alpha: alpha, minimumEffect: effect / 100)
    if arguments.has(.json) {
      try context.print(comparison.json)
    } else {
      try context.output.write(comparison.text)
    }
    if arguments.has(.json), comparison.assumesIndependence {
      context.say("warning: \(RunComparison.independence)")
    }
    if comparison.hasRegression { return .regression }
    if comparison.entries.isEmpty {
      context.say("the runs have no target in common that both have a median of")
      return .failed
    }
    return .ok
  }
}
