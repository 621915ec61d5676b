import FoundationEssentials
import NetOpt
import NetOptCore
import NetOptRouting

/// `netopt iplist check`: checks a list against the rules of its format. Reports the first 100 faults and the
/// number of the others.
struct ListCheckCommand: Command {
  let declaration = CommandDeclaration(
    name: "iplist check",
    summary: "check an IP list and print its faults",
    details: """
      Reads an IP list and prints its faults, at most 100, each with the broken rule and the place in the \
      file. The exit code is 65 when the list has faults or the command cannot read the file.
      """,
    operands: "FILE", operandCount: 1...1,
    options: [OptionGroup("Checking", [ClientOptions.allowPrivate]), OptionGroup("Output", [.json])],
    examples: [
      .init("netopt iplist check iplist.json", "checks a list"),
      .init(
        "generate-list | netopt iplist check --json -",
        "checks standard input and prints JSON for a program"),
    ])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    let file = arguments.operands[0]
    let bytes: [UInt8]
    do {
      bytes = try context.read(file, upTo: EndpointList.maximumBytes, for: .list)
    } catch {
      if arguments.has(.json) { try context.print(ListReport(file: file, error: error).json) }
      throw error
    }
    let rules = ListRules(
      allowPrivateAddresses: arguments.has(ClientOptions.allowPrivate), now: context.now())
    let (list, faults) = EndpointList.check(bytes, rules: rules)
    let report = ListReport(file: file, list: list, faults: faults)
    if arguments.has(.json) { try context.print(report.json) } else { try context.output.write(report.text) }
    guard list == nil || !faults.isEmpty else { return .ok }
    // With more faults than the limit, the last entry has the number of the others.
    let limit = FaultReport.limit
    let found = faults.count > limit ? "more than \(limit) faults" : Text.count(faults.count, "fault")
    context.say("\(report.name) has \(found); correct the list and check it again")
    return .invalidInput
  }
}
