/// What the answers of an origin consist of.
enum Expectation: Sendable {
  /// Anything with a status below 400. Nothing is asked.
  case anything
  /// So many bytes: the question, then the letter x.
  case echo(length: Int)
  /// So many bytes: words of eight bytes, each its own index, the least significant byte first. The question is in the header
  /// field `Question`.
  case words(length: Int)

  /// - Throws: `UsageError` for a text that is neither `echo:BYTES` nor `words:BYTES`.
  init(_ text: String?) throws {
    guard let text else {
      self = .anything
      return
    }
    let parts = text.split(separator: ":")
    let length = parts.count == 2 ? Int(parts[1]) : nil
    switch (parts.first, length) {
    case ("echo", .some(let length)) where length >= Question.digitCount: self = .echo(length: length)
    case ("words", .some(let length)) where length >= 8 && length % 8 == 0: self = .words(length: length)
    default: throw UsageError("--expect wants echo:BYTES or words:BYTES")
    }
  }
}
