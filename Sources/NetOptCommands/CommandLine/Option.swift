/// An option of a command. Parsing, the help text and suggestions use the same declaration.
struct Option: Hashable, Sendable {
  /// Whether an option takes a value.
  enum Value: Hashable, Sendable {
    /// The option is a switch.
    case none
    /// The option needs a value. The help text shows the value under this name: `--data DATA`, `--data=DATA`,
    /// `-d DATA`, `-dDATA`.
    case required(String)
    /// The option may have a value, but only joined to it: `--json`, `--json=FILE`.
    case optional(String)
  }

  /// The letter after a single dash.
  let short: Character?
  /// The name after two dashes.
  let long: String
  /// Whether the option takes a value.
  let value: Value
  /// The effect and the default of the option, for the help text: a sentence without a capital at the start
  /// and without a full stop.
  let help: String
  /// The environment variable with the value of the option if the option is not given.
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
  /// Shows the help text. Every command has this option.
  static let help = Option("help", short: "h", "show this help")
  /// Prints JSON on standard output.
  static let json = Option("json", "print one JSON object; its schema is in docs/schemas")
}

/// Options that the help text shows under one heading.
struct OptionGroup: Sendable {
  /// The heading.
  let title: String
  /// The options, in the order of the help text.
  let options: [Option]

  /// Creates a group.
  init(_ title: String, _ options: [Option]) {
    self.title = title
    self.options = options
  }
}

/// An error in the command line. The exit code is 64.
struct UsageError: Error, Hashable, CustomStringConvertible {
  /// The error and its remedy.
  let message: String

  /// Creates an error.
  init(_ message: String) { self.message = message }

  /// The error and its remedy.
  var description: String { message }
}
