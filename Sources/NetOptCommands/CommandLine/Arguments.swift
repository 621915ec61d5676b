import NetOptCore

/// A command's arguments as they were given, with the environment behind them.
struct Arguments: Sendable {
  /// An option that was given.
  struct Given: Hashable, Sendable {
    /// The option.
    let option: Option
    /// Its value, when it has one.
    let value: String?
  }

  /// What is no option, in order.
  let operands: [String]
  /// The options that were given, in order.
  let given: [Given]
  private let environment: [String: String]

  /// Makes arguments.
  init(_ given: [Given], operands: [String], environment: [String: String]) {
    self.given = given
    self.operands = operands
    self.environment = environment
  }

  /// Whether an option was given.
  func has(_ option: Option) -> Bool { given.contains { $0.option == option } }

  /// How an option is called in messages: by its variable when the value comes from there.
  func name(of option: Option) -> String {
    has(option) ? option.name : option.environment ?? option.name
  }

  /// The last value of an option, else that of its environment variable unless it is empty, else `nil`.
  func value(of option: Option) -> String? {
    if let last = given.last(where: { $0.option == option }) { return last.value }
    guard let value = option.environment.flatMap({ environment[$0] }), !value.isEmpty else { return nil }
    return value
  }

  /// All values of an option that may be repeated, in order.
  func values(of option: Option) -> [String] { given.filter { $0.option == option }.compactMap(\.value) }

  /// Which of some options that exclude each other was given last.
  func last(of options: [Option]) -> Option? { given.last { options.contains($0.option) }?.option }

  /// The value of an option that takes a whole number.
  func integer(_ option: Option, in range: ClosedRange<Int>) throws(UsageError) -> Int? {
    guard let text = value(of: option) else { return nil }
    guard let number = Int(text), range.contains(number) else {
      throw UsageError(
        "\(name(of: option)) takes a whole number from \(range.lowerBound) to \(range.upperBound), not \"\(text)\""
      )
    }
    return number
  }

  /// The value of an option that takes a number.
  func number(_ option: Option, in range: ClosedRange<Double>) throws(UsageError) -> Double? {
    guard let text = value(of: option) else { return nil }
    // Swift reads "0x10", "nan" and "inf" as numbers too; people who type these mean something else.
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

  /// The number without ".0".
  private static func plain(_ number: Double) -> String {
    Int(exactly: number).map(String.init) ?? String(number)
  }

  /// The value of an option that takes seconds, with or without a fraction; at most a year.
  func seconds(_ option: Option) throws(UsageError) -> Duration? {
    try number(option, in: 0...31_536_000).map { .nanoseconds(Int64($0 * 1e9)) }
  }

  /// The value of an option that takes one of some words.
  func choice<Word: RawRepresentable & CaseIterable>(
    _ option: Option, of type: Word.Type
  ) throws(UsageError) -> Word? where Word.RawValue == String {
    guard let text = value(of: option) else { return nil }
    if let word = Word(rawValue: text) { return word }
    let words = Word.allCases.map(\.rawValue)
    let meant = EditDistance.closest(to: text, among: words).map { "; did you mean \($0)?" } ?? ""
    throw UsageError("\(name(of: option)) is \(words.joined(separator: " or ")), not \"\(text)\"" + meant)
  }
}
