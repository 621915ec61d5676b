/// Options of a subcommand: each has a value.
struct Options {
  private var values: [String: String] = [:]

  /// - Throws: `UsageError` for an option that is not among the known ones, or has no value.
  init(_ arguments: [String], known: [String]) throws {
    var rest = arguments[...]
    while let option = rest.popFirst() {
      guard known.contains(option) else { throw UsageError("\(option) is not understood") }
      guard let value = rest.popFirst() else { throw UsageError("\(option) wants a value") }
      values[option] = value
    }
  }

  func text(_ option: String) -> String? { values[option] }

  func required(_ option: String) throws -> String {
    guard let value = values[option] else { throw UsageError("\(option) is missing") }
    return value
  }

  func count(_ option: String, _ otherwise: Int) throws -> Int {
    guard let text = values[option] else { return otherwise }
    guard let number = Int(text), number > 0 else { throw UsageError("\(option) wants a number above 0") }
    return number
  }

  /// One of two words, the first one for true.
  func choice(
    _ option: String, _ otherwise: Bool, yes: String = "yes", no: String = "no"
  ) throws -> Bool {
    guard let text = values[option] else { return otherwise }
    guard text == yes || text == no else { throw UsageError("\(option) wants \(yes) or \(no)") }
    return text == yes
  }
}
