import NetOptCore

/// The parsed arguments of a command. They also have the environment variables, because some options take
/// their value from a variable if they are not on the command line.
struct Arguments: Sendable {
  /// An option on the command line.
  struct Given: Hashable, Sendable {
    /// The declaration of the option.
    let option: Option
    /// The value of the option; `nil` when it was given without a value.
    let value: String?
  }

  /// The arguments that are not options, in order.
  let operands: [String]
  /// The options on the command line, in order.
  let given: [Given]
  /// The environment variables by name.
  private let environment: [String: String]

  /// Creates arguments.
  init(_ given: [Given], operands: [String], environment: [String: String]) {
    self.given = given
    self.operands = operands
    self.environment = environment
  }

  /// Whether an option is on the command line.
  func has(_ option: Option) -> Bool { given.contains { $0.option == option } }

  /// Returns the name to use in messages about the value of an option: the name of the option if it
  /// was given, otherwise the name of its environment variable, even if that is not set. An option without a
  /// variable always has its own name.
  func name(of option: Option) -> String {
    has(option) ? option.name : option.environment ?? option.name
  }

  /// Returns the last value of an option, else the value of its environment variable if that is not empty,
  /// else `nil`.
  func value(of option: Option) -> String? {
    if let last = given.last(where: { $0.option == option }) { return last.value }
    guard let value = option.environment.flatMap({ environment[$0] }), !value.isEmpty else { return nil }
    return value
  }

  /// Returns all values of an option that may be repeated, in order.
  func values(of option: Option) -> [String] { given.filter { $0.option == option }.compactMap(\.value) }

  /// Returns the option of `options` that comes last on the command line; `nil` if none of them is there. Of
  /// several options that exclude each other, the last one counts.
  func last(of options: [Option]) -> Option? { given.last { options.contains($0.option) }?.option }

  /// Returns the value of an option that takes an integer; `nil` if the option has no value.
  ///
  /// - Throws: `UsageError` for a value that is not an integer in the range.
  func integer(_ option: Option, in range: ClosedRange<Int>) throws(UsageError) -> Int? {
    guard let text = value(of: option) else { return nil }
    guard let number = Int(text), range.contains(number) else {
      throw UsageError(
        "\(name(of: option)) takes a whole number from \(range.lowerBound) to \(range.upperBound), not \"\(text)\""
      )
    }
    return number
  }

  /// Returns the value of an option that takes a number; `nil` if the option has no value.
  ///
  /// - Throws: `UsageError` for a value that is not a number in the range.
  func number(_ option: Option, in range: ClosedRange<Double>) throws(UsageError) -> Double? {
    guard let text = value(of: option) else { return nil }
    // `Double` also accepts "0x10", "nan" and "inf", which are probably mistakes.
    let plain = text.utf8.allSatisfy {
      (0x30...0x39).contains($0) || [0x2b, 0x2d, 0x2e, 0x45, 0x65].contains($0)
    }
    guard plain, let number = Double(text), range.contains(number) else {
      throw UsageError(
        "\(name(of: option)) takes a number from \(Self.plain(range.lowerBound)) to \(Self.plain(range.upperBound)), not \"\(text)\""
      )
    }
    return number
  }

  /// Formats a number without a trailing ".0".
  private static func plain(_ number: Double) -> String {
    Int(exactly: number).map(String.init) ?? String(number)
  }

  /// Returns the value of an option that takes a number of seconds, 0 to 31,536,000 (365 days), with or
  /// without a fraction; `nil` if the option has no value.
  ///
  /// - Throws: `UsageError` for a value that is not such a number.
  func seconds(_ option: Option) throws(UsageError) -> Duration? {
    try number(option, in: 0...31_536_000).map { .nanoseconds(Int64($0 * 1e9)) }
  }

  /// Returns the value of an option that takes one of the words of an enumeration; `nil` if the option has no
  /// value.
  ///
  /// - Throws: `UsageError` for another word.
  func choice<Word: RawRepresentable & CaseIterable>(
    _ option: Option, of type: Word.Type
  ) throws(UsageError) -> Word? where Word.RawValue == String {
    guard let text = value(of: option) else { return nil }
    if let word = Word(rawValue: text) { return word }
    let words = Word.allCases.map(\.rawValue)
    let meant = EditDistance.closest(to: text, among: words).map { "; did you mean \($0)?" } ?? ""
    throw UsageError("\(name(of: option)) takes \(words.joined(separator: " or ")), not \"\(text)\"" + meant)
  }
}
