import NetOptCore

/// Parses the arguments of a command by the rules of getopt_long(3):
///
/// - Several short options may follow one dash, the last with a value (`-kvd x`, `-dx`).
/// - A long option has `=` or a space before its value. It may be abbreviated if only one option fits.
/// - Options may follow operands.
/// - After `--`, all arguments are operands, even if they begin with a dash. A single dash is an operand.
struct OptionParser: Sendable {
  /// The result of parsing.
  enum Outcome: Sendable {
    /// The parsed arguments, with which the command runs.
    case arguments(Arguments)
    /// The user asks for help with `--help` or `-h`. The parser does not check the arguments after this
    /// option.
    case help
  }

  private let options: [Option]
  private let environment: [String: String]

  /// Creates a parser.
  ///
  /// - Parameters:
  ///   - options: the options of the command. The parser adds `--help`.
  ///   - environment: the environment variables by name. `Arguments` looks there for the values of options
  ///     that are not on the command line.
  init(_ options: [Option], environment: [String: String] = [:]) {
    self.options = options + [.help]
    self.environment = environment
  }

  /// Parses arguments.
  ///
  /// - Throws: `UsageError` for an unknown or ambiguous option, and for a missing or superfluous value.
  func parse(_ arguments: [String]) throws(UsageError) -> Outcome {
    var given: [Arguments.Given] = []
    var operands: [String] = []
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      if argument == "--" {
        operands += rest
        break
      } else if argument.hasPrefix("--") {
        given.append(try long(argument.dropFirst(2), &rest))
      } else if argument.hasPrefix("-"), argument != "-" {
        given += try bundle(argument.dropFirst(), &rest)
      } else {
        operands.append(argument)
      }
      if given.contains(where: { $0.option == .help }) { return .help }
    }
    return .arguments(Arguments(given, operands: operands, environment: environment))
  }

  /// Parses a long option.
  ///
  /// - Parameters:
  ///   - argument: the argument without its two dashes.
  ///   - rest: the arguments after `argument`. If the value of the option is the first of them, the method
  ///     removes it.
  private func long(
    _ argument: Substring, _ rest: inout ArraySlice<String>
  ) throws(UsageError) -> Arguments.Given {
    let name = argument.prefix { $0 != "=" }
    let joined = name.endIndex < argument.endIndex ? argument[name.endIndex...].dropFirst() : nil
    let option = try find(name)
    switch option.value {
    case .none:
      if joined != nil {
        throw UsageError("\(option.name) takes no value; remove \"=\" and the text after it")
      }
      return .init(option: option, value: nil)
    case .optional:
      return .init(option: option, value: joined.map(String.init))
    case .required(let what):
      if let joined { return .init(option: option, value: String(joined)) }
      return .init(option: option, value: try next(of: &rest, for: option.name, what))
    }
  }

  /// Returns the option with this long name, or else the only option whose long name begins with it.
  ///
  /// - Throws: `UsageError` if no option or more than one option fits.
  private func find(_ name: Substring) throws(UsageError) -> Option {
    if let exact = options.first(where: { $0.long == name }) { return exact }
    let matches = name.isEmpty ? [] : options.filter { $0.long.hasPrefix(name) }
    switch matches.count {
    case 1: return matches[0]
    case 0: throw UsageError("unknown option --\(name)" + suggestion(for: name))
    default:
      throw UsageError(
        "--\(name) is ambiguous: \(matches.map(\.name).joined(separator: ", ")); write more of the name")
    }
  }

  /// Returns the part of a message that suggests a similar long option; empty if there is none.
  private func suggestion(for name: Substring) -> String {
    EditDistance.closest(to: String(name), among: options.map(\.long)).map { "; did you mean --\($0)?" } ?? ""
  }

  /// Parses the short options after a dash.
  ///
  /// - Parameters:
  ///   - letters: the argument without its dash.
  ///   - rest: the arguments after this argument. If the value of the last option is the first of them, the
  ///     method removes it.
  private func bundle(
    _ letters: Substring, _ rest: inout ArraySlice<String>
  ) throws(UsageError) -> [Arguments.Given] {
    var given: [Arguments.Given] = []
    var letters = letters
    while let letter = letters.popFirst() {
      guard let option = options.first(where: { $0.short == letter }) else {
        // Suggests `--json` to a user who writes `-json`. Makes no suggestion if letters before this letter
        // are options.
        let whole =
          given.isEmpty ? EditDistance.closest(to: "\(letter)\(letters)", among: options.map(\.long)) : nil
        throw UsageError("unknown option -\(letter)" + (whole.map { "; did you mean --\($0)?" } ?? ""))
      }
      guard case .required(let what) = option.value else {
        given.append(.init(option: option, value: nil))
        continue
      }
      let value = letters.isEmpty ? try next(of: &rest, for: "-\(letter)", what) : String(letters)
      given.append(.init(option: option, value: value))
      break
    }
    return given
  }

  /// Removes the next argument and returns it as the value of an option.
  ///
  /// - Parameters:
  ///   - name: the option as the user wrote it, for the message.
  ///   - what: what the help text calls the value.
  private func next(
    of rest: inout ArraySlice<String>, for name: String, _ what: String
  ) throws(UsageError) -> String {
    guard let value = rest.popFirst() else { throw UsageError("\(name) needs a value: \(name) \(what)") }
    return value
  }
}
