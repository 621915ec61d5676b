/// Reads a command's arguments by the rules of `getopt_long(3)`: short options in bundles (`-kvd x`, `-dx`), long
/// ones with `=` or a space before the value and in every unambiguous abbreviation, options after operands, `--`
/// before operands that begin with a dash; a single dash is an operand.
struct OptionParser: Sendable {
  /// What the arguments say.
  enum Outcome: Sendable {
    /// The command is to be run with these.
    case arguments(Arguments)
    /// `--help` was among them; what comes after it was not looked at.
    case help
  }

  private let options: [Option]
  private let environment: [String: String]

  /// Makes a parser.
  ///
  /// - Parameters:
  ///   - options: the options there are; `--help` is added.
  ///   - environment: where options that name a variable find their value when they are not given.
  init(_ options: [Option], environment: [String: String] = [:]) {
    self.options = options + [.help]
    self.environment = environment
  }

  /// Reads arguments.
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

  private func long(
    _ argument: Substring, _ rest: inout ArraySlice<String>
  ) throws(UsageError) -> Arguments.Given {
    let name = argument.prefix { $0 != "=" }
    let joined = name.endIndex < argument.endIndex ? argument[name.endIndex...].dropFirst() : nil
    let option = try find(name)
    switch option.value {
    case .none:
      if joined != nil {
        throw UsageError("\(option.name) takes no value; leave \"=\" and what follows away")
      }
      return .init(option: option, value: nil)
    case .optional:
      return .init(option: option, value: joined.map(String.init))
    case .required(let what):
      if let joined { return .init(option: option, value: String(joined)) }
      return .init(option: option, value: try next(of: &rest, for: option.name, what))
    }
  }

  private func find(_ name: Substring) throws(UsageError) -> Option {
    if let exact = options.first(where: { $0.long == name }) { return exact }
    let matches = name.isEmpty ? [] : options.filter { $0.long.hasPrefix(name) }
    switch matches.count {
    case 1: return matches[0]
    case 0: throw UsageError("unknown option --\(name)" + suggestion(for: name))
    default:
      throw UsageError("--\(name) may be \(matches.map(\.name).joined(separator: ", ")); write more of it")
    }
  }

  private func suggestion(for name: Substring) -> String {
    EditDistance.closest(to: String(name), among: options.map(\.long)).map { "; did you mean --\($0)?" } ?? ""
  }

  private func bundle(
    _ letters: Substring, _ rest: inout ArraySlice<String>
  ) throws(UsageError) -> [Arguments.Given] {
    var given: [Arguments.Given] = []
    var letters = letters
    while let letter = letters.popFirst() {
      guard let option = options.first(where: { $0.short == letter }) else {
        // Who writes -json means --json; the letters before it are no news.
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

  private func next(
    of rest: inout ArraySlice<String>, for name: String, _ what: String
  ) throws(UsageError) -> String {
    guard let value = rest.popFirst() else { throw UsageError("\(name) needs a value: \(name) \(what)") }
    return value
  }
}
