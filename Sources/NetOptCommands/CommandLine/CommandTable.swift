import NetOptCore

/// The commands by their names.
struct CommandTable: Sendable {
  private let commands: [any Command]

  /// Makes a table; its order is that of the help text.
  init(_ commands: [any Command]) { self.commands = commands }

  /// What the commands say about themselves.
  var declarations: [CommandDeclaration] { commands.map(\.declaration) }

  /// The command that a command line begins with, and what follows its name.
  func find(_ arguments: [String]) -> (command: any Command, rest: [String])? {
    for command in commands {
      let words = command.declaration.words
      if arguments.starts(with: words) { return (command, Array(arguments.dropFirst(words.count))) }
    }
    return nil
  }

  /// The commands of several words that begin with this one.
  func group(_ word: String) -> [CommandDeclaration] {
    declarations.filter { $0.words.count > 1 && $0.words[0] == word }
  }

  /// What to tell someone whose command line begins with no command.
  func unknown(_ arguments: [String]) -> UsageError {
    let arguments = arguments.map(HTTPURL.shown)
    let word = arguments[0]
    let group = group(word).map { $0.words[1] }
    if !group.isEmpty {
      guard arguments.count > 1, !arguments[1].hasPrefix("-") else {
        return UsageError("\(word) needs a command: netopt \(word) \(group.joined(separator: "|"))")
      }
      let meant = EditDistance.closest(to: arguments[1], among: group)
      return UsageError(
        "unknown command \"\(word) \(arguments[1])\"" + Self.suggestion(meant.map { "\(word) \($0)" })
          + " (see netopt \(word) --help)")
    }
    if word.contains("://") { return UsageError("\(word) is no command; write netopt get \(word)") }
    if find([word]) != nil {
      return UsageError("unknown command \"\(arguments.joined(separator: " "))\" (see netopt --help)")
    }
    let meant = EditDistance.closest(to: word, among: declarations.map { $0.words[0] } + ["help"])
    return UsageError("unknown command \"\(word)\"" + Self.suggestion(meant) + " (see netopt --help)")
  }

  private static func suggestion(_ meant: String?) -> String {
    meant.map { "; did you mean \"\($0)\"?" } ?? ""
  }
}
