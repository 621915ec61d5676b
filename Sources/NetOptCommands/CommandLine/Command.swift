/// A command of the program, in a file of its own. `Program` finds the command by name, parses its arguments,
/// runs the command, and turns a thrown error into a message on standard error and an exit code.
protocol Command: Sendable {
  /// The name, the operands, the options and the help of the command.
  var declaration: CommandDeclaration { get }

  /// Runs the command. SIGINT and SIGTERM cancel the task of the command. The command then ends soon, and may
  /// still print partial results; the exit code tells that a signal interrupted the command.
  ///
  /// - Returns: the exit code.
  /// - Throws: `UsageError`, `NetOptError` or `OutputError`, which `Program` reports.
  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode
}

/// The name, the operands, the options and the help of a command.
struct CommandDeclaration: Sendable {
  /// An example of a command line, for the help text.
  struct Example: Hashable, Sendable {
    /// The command line.
    let line: String
    /// The effect of the command line, in words.
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
  /// The effect of the command in one line, without a capital at the start and without a full stop.
  let summary: String
  /// A description of the command in a few sentences. Empty lines separate paragraphs.
  let details: String
  /// The operands as the usage line shows them: `URL`, `[HOST…]`.
  let operands: String
  /// The permitted number of operands.
  let operandCount: ClosedRange<Int>
  /// The options, without `--help`, which every command has.
  let options: [OptionGroup]
  /// Examples, at least one.
  let examples: [Example]

  /// Creates a declaration.
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
