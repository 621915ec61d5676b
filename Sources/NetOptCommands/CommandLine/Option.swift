/// An option of a command. Declared once; parsing, the help text and suggestions come from the declaration.
struct Option: Hashable, Sendable {
  /// Whether an option takes a value.
  enum Value: Hashable, Sendable {
    /// It is a switch.
    case none
    /// It needs one, which the help text calls by this name: `--data DATA`, `--data=DATA`, `-d DATA`, `-dDATA`.
    case required(String)
    /// It may have one, which is then joined to it: `--json`, `--json=FILE`.
    case optional(String)
  }

  /// The letter behind a single dash.
  let short: Character?
  /// The name behind two dashes.
  let long: String
  /// Whether it takes a value.
  let value: Value
  /// What it does and its default, for the help text; a sentence without capital and full stop.
  let help: String
  /// The environment variable that gives the value when the option is not there.
  let environment: String?

  /// Declares an option.
  init(
    _ long: String, short: Character? = nil, takes value: Value = .none, _ help: String,
    environment: String? = nil
  ) {
    self.short = short
    self.long = long
    self.value = value
    self.help = help
    self.environment = environment
  }

  /// The option as messages name it: `--data`.
  var name: String { "--" + long }
}

extension Option {
  /// Asks for the help text; every command has it.
  static let help = Option("help", short: "h", "show this text")
  /// Asks for JSON on standard output.
  static let json = Option("json", "print one JSON object; its schema is in docs/schemas")
}

/// Options that the help text shows under one heading.
struct OptionGroup: Sendable {
  /// The heading.
  let title: String
  /// The options, in the order of the help text.
  let options: [Option]

  /// Makes a group.
  init(_ title: String, _ options: [Option]) {
    self.title = title
    self.options = options
  }
}

/// Something is wrong with how the program was called. The message says what, and what to do; exit code 64.
struct UsageError: Error, Hashable, CustomStringConvertible {
  /// What is wrong, and what to do.
  let message: String

  /// Makes an error.
  init(_ message: String) { self.message = message }

  /// What is wrong, and what to do.
  var description: String { message }
}
