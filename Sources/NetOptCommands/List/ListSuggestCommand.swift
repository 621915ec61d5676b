import NetOptBench
import NetOptCore

/// `netopt iplist suggest`: suggests an order of a list's addresses from the measurements of a saved run.
struct ListSuggestCommand: Command {
  private static let from = Option(
    "from", takes: .required("RUN"), "saved run, written by netopt bench --json")

  let declaration = CommandDeclaration(
    name: "iplist suggest",
    summary: "suggest from a bench run how to order the addresses of a host and which to remove",
    details: """
      Reads a saved run and prints a suggested order of the addresses in the IP list and the addresses to \
      remove, each with the evidence. Addresses that the run cannot tell apart keep their order. The command \
      suggests to remove an address when bench could not use it, when significantly more than 5 % of its \
      requests failed, or when DNS is significantly faster. An address without a route from the machine of \
      the run (such as IPv6 on a machine without IPv6) is listed as not measured.

      The command does not change the list. The exit code is 1 when the run cannot tell the addresses apart.
      """,
    operands: "", operandCount: 0...0,
    options: [OptionGroup("Input", [from]), OptionGroup("Output", [.json])],
    examples: [.init("netopt iplist suggest --from run.json", "prints the suggestion with its evidence")])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    guard let file = arguments.value(of: Self.from) else {
      throw UsageError("--from RUN is missing; to write a run, use netopt bench --json=RUN")
    }
    let run = try context.savedRun(file)
    if run.isPartial { context.say("warning: \(file) contains a partial run, which ended early") }
    let suggestion: ListSuggestion
    do throws(ListSuggestion.Refusal) {
      suggestion = try ListSuggestion(run)
    } catch {
      context.say("\(file): \(error)")
      return .failed
    }
    if arguments.has(.json) {
      try context.print(suggestion.json)
    } else {
      try context.output.write(suggestion.text)
    }
    return .ok
  }
}
