/// The declaration of an option of a command. The parser, the help text and suggestions use it.
struct Option: Hashable, Sendable {
  /// Whether an option takes a value, and what the help text calls the value.
  enum Value: Hashable, Sendable {
    /// The option takes no value.
    case none
    /// The option needs a value. Users write `--data DATA`, `--data=DATA`, `-d DATA` or `-dDATA`. The text is
    /// the name of the value in the help text, such as `DATA`.
    case required(String)
    /// The option may have a value, but only after an equals sign. Users write `--json` or `--json=FILE`. The
    /// text is the name of the value in the help text.
    case optional(String)
  }

  /// The letter after a single dash; `nil` for an option without one.
  let short: Character?
  /// The name after two dashes, without them.
  let long: String
  /// Whether the option takes a value.
  let value: Value
  /// The effect and the default of the option, for the help text. It begins with a lowercase letter and has
  /// no full stop.
  let help: String
  /// The name of the environment variable that has the value of the option when the option is not on the
  /// command line; `nil` for an option without such a variable.
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

  /// The name with two dashes, as messages show it: `--data`.
  var name: String { "--" + long }
}

extension Option {
  /// `--help`, which every command has.
  static let help = Option("help", short: "h", "show this help")
  /// `--json` without a value, which several commands have.
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
