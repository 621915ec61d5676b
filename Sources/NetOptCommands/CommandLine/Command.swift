/// A command of the program. One file each; `Program` finds it by its name, parses its arguments, runs it, and turns
/// what it throws into a message on standard error and an exit code.
protocol Command: Sendable {
  /// What the command is called, takes and says about itself.
  var declaration: CommandDeclaration { get }

  /// Runs the command. Its task is cancelled when the process is told to end (SIGINT, SIGTERM): the command then
  /// comes to an end soon, and may still print what it has; the exit code says that it was interrupted.
  ///
  /// - Returns: the exit code.
  /// - Throws: `UsageError`, `NetOptError` or `OutputError`, which `Program` reports.
  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode
}

/// What a command is called, takes and says about itself.
struct CommandDeclaration: Sendable {
  /// A command line that shows what the command is for.
  struct Example: Hashable, Sendable {
    /// The command line.
    let line: String
    /// What it does.
    let meaning: String

    /// Makes an example.
    init(_ line: String, _ meaning: String) {
      self.line = line
      self.meaning = meaning
    }
  }

  /// The words that call it, without the program's: `get`, `iplist check`.
  let name: String
  /// What it does in one line, without a capital and a full stop.
  let summary: String
  /// What it does in a few sentences, and what is worth knowing; paragraphs are parted by an empty line.
  let details: String
  /// Its operands as the usage line shows them: `URL`, `[HOST…]`.
  let operands: String
  /// How many operands it takes.
  let operandCount: ClosedRange<Int>
  /// Its options. `--help` is added.
  let options: [OptionGroup]
  /// Examples, at least one.
  let examples: [Example]

  /// Makes a declaration.
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
  func check(_ operands: [String]) throws(UsageError) {
    if operands.count < operandCount.lowerBound {
      throw UsageError("\(self.operands) is missing: netopt \(name) \(self.operands)")
    }
    if operands.count > operandCount.upperBound {
      // None of them is shown: it may be the rest of a field with a secret.
      let takes =
        operandCount.upperBound == 0 ? "takes no operand" : "takes \(self.operands) and nothing more"
      throw UsageError(
        "netopt \(name) \(takes), not \(Text.count(operands.count, "operand")); quote a value that has spaces"
      )
    }
  }
}
