import NetOptBench
import NetOptCore

/// `netopt compare`: compares the response times and failures of two saved runs, target by target.
struct CompareCommand: Command {
  private static let alpha = Option(
    "alpha", takes: .required("P"),
    "significance level (false positive rate), 0.0001 to 0.5; default: 0.05")
  private static let minimumEffect = Option(
    "min-effect", takes: .required("PERCENT"),
    "smallest difference of medians to report as significant, 0 to 100 %; default: 1")

  let declaration = CommandDeclaration(
    name: "compare",
    summary: "compare two saved runs of bench",
    details: """
      Compares two saved runs, written by netopt bench --json or netopt merge. For each target, compare \
      tests the response times with the rank-sum test, which accounts for dependence between successive \
      requests, and tests the shares of failed requests. The p values account for the number of all these \
      tests.

      The runs were not interleaved, so a difference can come from the network as well as from the servers. \
      Within one run, bench measures the targets round by round, which is not possible for two separate \
      runs. The exit code is 5 when, in the second run, a target is significantly slower, fails \
      significantly more often, was excluded, or has no median although enough requests were sent.
      """,
    operands: "BEFORE AFTER", operandCount: 2...2,
    options: [OptionGroup("Comparing", [alpha, minimumEffect]), OptionGroup("Output", [.json])],
    examples: [
      .init(
        "netopt compare monday.json tuesday.json",
        "shows the medians, and exits with 5 when one became slower")
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
      context.say("warning: \(file) contains a partial run, which ended early")
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
      context.say("no target has a median in both runs")
      return .failed
    }
    return .ok
  }
}
