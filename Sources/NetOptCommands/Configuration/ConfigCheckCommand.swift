import NetOpt
import NetOptCore

/// `netopt config check`: reads a configuration file as `ClientConfiguration.init(file:)` does, and reports
/// its faults. The report describes the first 100 faults and gives the number of all faults. If the file has
/// no fault, the command also reads the files that the configuration names, and reports their faults.
struct ConfigCheckCommand: Command {
  let declaration = CommandDeclaration(
    name: "config check",
    summary: "check a configuration file and print its faults",
    details: """
      Reads a configuration file of the library, the environment variables that take precedence over it, and \
      the files that it names: the list, keys, certificates. Prints the faults, at most 100, or the settings that differ \
      from their defaults. Opens no connection. The exit code is 1 when there are faults, and 65 when the \
      command cannot read the configuration file.
      """,
    operands: "FILE", operandCount: 1...1,
    options: [OptionGroup("Output", [.json])],
    examples: [
      .init("netopt config check netopt.json", "checks a configuration file"),
      .init(
        "generate-config | netopt config check --json -",
        "checks standard input, with relative paths in the working directory, and prints JSON"),
    ])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    let file = arguments.operands[0]
    let bytes: [UInt8]
    do {
      bytes = try context.read(file, upTo: ConfigurationFile.maximumBytes, for: .list)
    } catch {
      if arguments.has(.json) { try context.print(ConfigReport(file: file, error: error).json) }
      throw error
    }
    let folder = file == "-" ? "." : FileBytes.folder(of: file)
    let report = ConfigReport(
      file: file, ConfigurationFile(bytes, folder: folder, environment: context.environment))
    if arguments.has(.json) { try context.print(report.json) } else { try context.output.write(report.text) }
    if report.isValid { return .ok }
    context.say(
      "\(report.name) has \(Text.count(report.faultCount, "fault")); correct the file and check it again")
    return .failed
  }
}
