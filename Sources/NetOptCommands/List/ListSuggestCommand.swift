import NetOptBench
import NetOptCore

/// `netopt iplist suggest`: suggests changes to a list from a saved run.
struct ListSuggestCommand: Command {
  private static let from = Option(
    "from", takes: .required("RUN"), "the run that netopt bench --json has written")

  let declaration = CommandDeclaration(
    name: "iplist suggest",
    summary: "suggest an order of a host's addresses, and which ones to remove, from a run of bench",
    details: """
      Reads a saved run and prints in which order the addresses should stand in the list, and which ones should leave it, \
      each with what speaks for it. Addresses that the run cannot tell apart keep their order. An address should leave when it \
      could not be used, when surely more than 5 % of its requests failed, or when DNS is faster and that is no chance. An \
      address that there is no way to from where the run was made (IPv6 on a machine without it) is named as not measured.

      Changes nothing. Exits with 1 when nothing tells the addresses apart.
      """,
    operands: "", operandCount: 0...0,
    options: [OptionGroup("Input", [from]), OptionGroup("Output", [.json])],
    examples: [.init("netopt iplist suggest --from run.json", "prints the suggestion with its evidence")])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    guard let file = arguments.value(of: Self.from) else {
      throw UsageError("--from RUN is missing: a run that netopt bench --json=RUN has written")
    }
    let run = try context.savedRun(file)
    if run.isPartial { context.say("warning: \(file) is of a run that ended before its time") }
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
