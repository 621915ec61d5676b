import NetOptCore

/// The table in which the program looks up its commands by name.
struct CommandTable: Sendable {
  private let commands: [any Command]

  /// Creates a table. The help text lists the commands in the order of the table.
  init(_ commands: [any Command]) { self.commands = commands }

  /// The declarations of the commands.
  var declarations: [CommandDeclaration] { commands.map(\.declaration) }

  /// Returns the command with whose name the arguments begin, and the arguments after the name; `nil` if
  /// there is no such command.
  func find(_ arguments: [String]) -> (command: any Command, rest: [String])? {
    for command in commands {
      let words = command.declaration.words
      if arguments.starts(with: words) { return (command, Array(arguments.dropFirst(words.count))) }
    }
    return nil
  }

  /// Returns the commands of a group, such as `cache`: those whose names have several words, of which `word`
  /// is the first.
  func group(_ word: String) -> [CommandDeclaration] {
    declarations.filter { $0.words.count > 1 && $0.words[0] == word }
  }

  /// Returns the error for arguments that do not begin with the name of a command. The message suggests a
  /// similar name if there is one.
  ///
  /// - Parameter arguments: the command line without the program's name; at least one argument.
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
    if word.contains("://") { return UsageError("\(word) is not a command; run: netopt get \(word)") }
    if find([word]) != nil {
      return UsageError("unknown command \"\(arguments.joined(separator: " "))\" (see netopt --help)")
    }
    let meant = EditDistance.closest(to: word, among: declarations.map { $0.words[0] } + ["help"])
    return UsageError("unknown command \"\(word)\"" + Self.suggestion(meant) + " (see netopt --help)")
  }

  /// Returns the part of a message that suggests a name; empty for `nil`.
  private static func suggestion(_ meant: String?) -> String {
    meant.map { "; did you mean \"\($0)\"?" } ?? ""
  }
}
