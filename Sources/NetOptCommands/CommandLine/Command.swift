/// A command of the program. `Program` finds the command by name, parses its arguments and runs it. If the
/// command throws an error, `Program` prints a message on standard error and chooses the exit code.
protocol Command: Sendable {
  /// The name, the operands, the options and the help of the command.
  var declaration: CommandDeclaration { get }

  /// Runs the command. SIGINT and SIGTERM cancel the task in which it runs. The command must then end soon,
  /// but may print partial results first. After a signal, the exit code of the process names the signal,
  /// whatever the command returns.
  ///
  /// - Returns: the exit code.
  /// - Throws: `UsageError`, `NetOptError` or `OutputError`.
  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode
}

/// The declaration of a command: its name, operands and options, and the texts of its help.
struct CommandDeclaration: Sendable {
  /// An example of a command line, for the help text.
  struct Example: Hashable, Sendable {
    /// The command line.
    let line: String
    /// What the command line does.
    let meaning: String

    /// Creates an example.
    init(_ line: String, _ meaning: String) {
      self.line = line
      self.meaning = meaning
    }
  }

  /// The words of the command line that select the command, without the program's name: `get`,
  /// `iplist check`.
  let name: String
  /// What the command does, in one line that begins with a lowercase letter and has no full stop.
  let summary: String
  /// A description of the command in a few sentences. Empty lines separate paragraphs.
  let details: String
  /// The operands as the usage line shows them: `URL`, `[HOST…]`; empty for a command without operands.
  let operands: String
  /// The permitted number of operands.
  let operandCount: ClosedRange<Int>
  /// The options in the order of the help text. `--help` is not among them, because every command has it.
  let options: [OptionGroup]
  /// The examples. There is at least one, and the help text of the program shows the first.
  let examples: [Example]

  /// Creates a declaration. The parameters are described at the properties.
  init(
    name: String, summary: String, details: String, operands: String, operandCount: ClosedRange<Int>,
    options: [OptionGroup], examples: [Example]
  ) {
    self.name = name
    self.summary = summary
    self.details = details
    self.operands = operands
    self.operandCount = operandCount
    self.options = options
    self.examples = examples
  }

  /// The words of the name.
  var words: [String] { name.split(separator: " ").map(String.init) }

  /// Checks the number of operands.
  ///
  /// - Throws: `UsageError` for too few or too many operands.
  func check(_ operands: [String]) throws(UsageError) {
    if operands.count < operandCount.lowerBound {
      throw UsageError("\(self.operands) is missing: netopt \(name) \(self.operands)")
    }
    if operands.count > operandCount.upperBound {
      // The message shows no operand, because an operand may be the rest of a header field with a secret.
      let takes =
        operandCount.upperBound == 0 ? "takes no operands" : "takes only \(self.operands)"
      throw UsageError(
        "netopt \(name) \(takes), not \(Text.count(operands.count, "operand")); quote a value that contains spaces"
      )
    }
  }
}
