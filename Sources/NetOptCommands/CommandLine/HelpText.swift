import NetOpt

/// The help texts, built from the declarations.
struct HelpText {
  /// The widths to which the texts are adapted, in characters. Longer lines are hard to read.
  static let widths = 60...100
  private static let indent = 2
  private static let helpColumn = 30

  private let width: Int

  /// - Parameter columns: the width of the terminal, in characters.
  init(columns: Int) { width = min(max(columns, Self.widths.lowerBound), Self.widths.upperBound) }

  /// The help text of the program.
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

  /// The help text of a group: the commands with a name that starts with `word`.
  func group(_ word: String, _ commands: [CommandDeclaration]) -> String {
    joined([
      ["Usage: netopt \(word) COMMAND [OPTIONS] [OPERANDS]"],
      section("Commands", commands.map { ($0.name, $0.summary) }),
    ])
  }

  /// The help text of a command.
  func command(_ command: CommandDeclaration) -> String {
    let usage = "Usage: netopt \(command.name) [OPTIONS]" + (command.operands.isEmpty ? "" : " ")
    let paragraphs = command.details.split(separator: "\n\n").map { Text.wrapped(String($0), at: width) }
    let groups = command.options + [OptionGroup("Help", [.help])]
    return joined(
      [[usage + command.operands]] + paragraphs
        + groups.map { section($0.title, $0.options.map { (label($0), text($0)) }) }
        + [examples(command.examples)])
  }

  private func joined(_ blocks: [[String]]) -> String {
    blocks.map { $0.joined(separator: "\n") }.joined(separator: "\n\n") + "\n"
  }

  private func examples(_ examples: [CommandDeclaration.Example]) -> [String] {
    ["Examples:"]
      + examples.flatMap { example in
        broken(example.line)
      }
  }

  /// Returns the lines of a command line. A command line that is too long continues after a backslash, as in a
  /// shell: at a space that is not between quotes.
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
      // Room for the space and the backslash.
      if lines[lines.count - 1].count + 1 + word.count + 2 <= width {
        lines[lines.count - 1] += " " + word
      } else {
        lines[lines.count - 1] += " \\"
        lines.append("    " + word)
      }
    }
    return lines
  }

  private func label(_ option: Option) -> String {
    let short = option.short.map { "-\($0), " } ?? "    "
    return switch option.value {
    case .none: short + option.name
    case .required(let what): short + option.name + " " + what
    case .optional(let what): short + option.name + "[=\(what)]"
    }
  }

  private func text(_ option: Option) -> String {
    option.help + (option.environment.map { " [\($0)]" } ?? "")
  }

  private func section(_ title: String, _ rows: [(label: String, text: String)]) -> [String] {
    ["\(title):"] + rows.flatMap { row($0.label, $0.text) }
  }

  /// Returns the label and the text side by side. If the label is too long, the text is on the lines below.
  private func row(_ label: String, _ text: String) -> [String] {
    var lines = Text.wrapped(text, at: width - Self.helpColumn)
    let label = String(repeating: " ", count: Self.indent) + label
    let margin = String(repeating: " ", count: Self.helpColumn)
    guard label.count + 2 <= Self.helpColumn else { return [label] + lines.map { margin + $0 } }
    let first = lines.isEmpty ? "" : lines.removeFirst()
    return [label + margin.dropFirst(label.count) + first] + lines.map { margin + $0 }
  }

  /// Returns the environment variables that can replace options of the commands, each variable once.
  private func variables(of commands: [CommandDeclaration]) -> [(String, String)] {
    var seen: Set<String> = []
    return commands.flatMap(\.options).flatMap(\.options).compactMap { option in
      guard let name = option.environment, seen.insert(name).inserted else { return nil }
      return (name, "same as \(option.name)")
    }
  }

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
