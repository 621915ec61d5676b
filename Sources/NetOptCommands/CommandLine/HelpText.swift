import NetOpt

/// Makes the help texts from the declarations of the commands.
struct HelpText {
  /// The possible widths of the texts, in characters. Wider lines are hard to read.
  static let widths = 60...100
  /// The number of spaces before a label.
  private static let indent = 2
  /// The column in which the text beside a label begins, counted from 0.
  private static let helpColumn = 30

  /// The width of the texts, in characters.
  private let width: Int

  /// Creates help texts of the width of the terminal, within `widths`.
  ///
  /// - Parameter columns: the width of the terminal, in characters.
  init(columns: Int) { width = min(max(columns, Self.widths.lowerBound), Self.widths.upperBound) }

  /// Returns the help text of the program.
  ///
  /// - Parameter options: the options that the program takes without a command.
  func program(_ commands: [CommandDeclaration], options: [Option]) -> String {
    let heading = "netopt \(NetOptVersion.string): an HTTP client that connects to the fastest IP address"
    let usage = "Usage: netopt COMMAND [OPTIONS] [OPERANDS]"
    return joined([
      Text.wrapped(heading, at: width), [usage],
      section("Commands", commands.map { ($0.name, $0.summary) } + [("help [COMMAND]", "show help")]),
      section("Options", options.map { (label($0), $0.help) }),
      section("Environment", variables(of: commands) + ClientOptions.variables),
      section("Exit codes", Self.exitCodes),
      examples(commands.compactMap(\.examples.first)),
      Text.wrapped("netopt help COMMAND shows a command's options and examples.", at: width),
    ])
  }

  /// Returns the help text of a group of commands. Their names begin with `word`.
  func group(_ word: String, _ commands: [CommandDeclaration]) -> String {
    joined([
      ["Usage: netopt \(word) COMMAND [OPTIONS] [OPERANDS]"],
      section("Commands", commands.map { ($0.name, $0.summary) }),
    ])
  }

  /// Returns the help text of a command.
  func command(_ command: CommandDeclaration) -> String {
    let usage = "Usage: netopt \(command.name) [OPTIONS]" + (command.operands.isEmpty ? "" : " ")
    let paragraphs = command.details.split(separator: "\n\n").map { Text.wrapped(String($0), at: width) }
    let groups = command.options + [OptionGroup("Help", [.help])]
    return joined(
      [[usage + command.operands]] + paragraphs
        + groups.map { section($0.title, $0.options.map { (label($0), text($0)) }) }
        + [examples(command.examples)])
  }

  /// Joins blocks of lines, with an empty line between two blocks.
  private func joined(_ blocks: [[String]]) -> String {
    blocks.map { $0.joined(separator: "\n") }.joined(separator: "\n\n") + "\n"
  }

  /// Returns the lines of the section with the examples: each command line with its meaning below it.
  private func examples(_ examples: [CommandDeclaration.Example]) -> [String] {
    ["Examples:"]
      + examples.flatMap { example in
        broken(example.line) + Text.wrapped(example.meaning, at: width - 6).map { "      " + $0 }
      }
  }

  /// Breaks an example of a command line into lines that fit the width. It breaks at spaces that are not
  /// between quotes, and ends each line except the last with a backslash, as in a shell.
  private func broken(_ command: String) -> [String] {
    var words = [""]
    var quote: Character?
    for character in command {
      if character == " ", quote == nil {
        words.append("")
        continue
      }
      if character == quote {
        quote = nil
      } else if quote == nil, "'\"".contains(character) {
        quote = character
      }
      words[words.count - 1].append(character)
    }
    var lines = ["  " + words[0]]
    for word in words.dropFirst() {
      // The 2 is the room for a space and a backslash.
      if lines[lines.count - 1].count + 1 + word.count + 2 <= width {
        lines[lines.count - 1] += " " + word
      } else {
        lines[lines.count - 1] += " \\"
        lines.append("    " + word)
      }
    }
    return lines
  }

  /// The names of an option and its value, as the help text shows them: `-d, --data DATA`.
  private func label(_ option: Option) -> String {
    let short = option.short.map { "-\($0), " } ?? "    "
    return switch option.value {
    case .none: short + option.name
    case .required(let what): short + option.name + " " + what
    case .optional(let what): short + option.name + "[=\(what)]"
    }
  }

  /// The description of an option, with its environment variable.
  private func text(_ option: Option) -> String {
    option.help + (option.environment.map { " [\($0)]" } ?? "")
  }

  /// The lines of a section: its title, and its rows with a label and a text.
  private func section(_ title: String, _ rows: [(label: String, text: String)]) -> [String] {
    ["\(title):"] + rows.flatMap { row($0.label, $0.text) }
  }

  /// The lines of a row: the label and the text side by side. If the label is too long, the text begins below
  /// it.
  private func row(_ label: String, _ text: String) -> [String] {
    var lines = Text.wrapped(text, at: width - Self.helpColumn)
    let label = String(repeating: " ", count: Self.indent) + label
    let margin = String(repeating: " ", count: Self.helpColumn)
    guard label.count + 2 <= Self.helpColumn else { return [label] + lines.map { margin + $0 } }
    let first = lines.isEmpty ? "" : lines.removeFirst()
    return [label + margin.dropFirst(label.count) + first] + lines.map { margin + $0 }
  }

  /// Returns the environment variables from which options of the commands take their values, each variable
  /// once.
  private func variables(of commands: [CommandDeclaration]) -> [(String, String)] {
    var seen: Set<String> = []
    return commands.flatMap(\.options).flatMap(\.options).compactMap { option in
      guard let name = option.environment, seen.insert(name).inserted else { return nil }
      return (name, "same as \(option.name)")
    }
  }

  /// The exit codes (`ExitCode`) and their meanings.
  private static let exitCodes = [
    ("0", "success"),
    ("1", "failure"),
    ("3", "some targets failed (bench --strict)"),
    ("4", "a target missed an objective (bench --slo)"),
    ("5", "a regression (compare)"),
    ("64", "the command line is invalid"),
    ("65", "an input file cannot be read or is invalid"),
    ("130, 143", "interrupted by SIGINT, SIGTERM"),
    ("141", "the reader of standard output closed it"),
  ]
}
