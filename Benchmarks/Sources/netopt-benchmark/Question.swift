import NetOpt

/// A request that asks a question: a number at the end of the URL's path, which the origin puts into its answer.
struct Question: Sendable {
  static let digitCount = 6
  /// A power of two and few. A client that parses each URL once finds it again, and the parsed ones stay in the processor's
  /// caches. Two requests at random ask the same thing once in so many times.
  private static let most = 16

  private(set) var request: NetOptRequest
  /// Empty when nothing is asked.
  let digits: String

  /// - Parameter number: what to ask; `nil` to ask nothing.
  init(_ request: NetOptRequest, number: Int?) throws {
    guard let number else {
      (self.request, digits) = (request, "")
      return
    }
    let text = String(number % 1_000_000)
    digits = String(repeating: "0", count: Self.digitCount - text.count) + text
    var request = request
    request.url = try HTTPURL("\(request.url)/\(digits)")
    self.request = request
  }

  /// The same question with a tag for the metrics.
  func tagged(_ tag: String) -> Question {
    var question = self
    question.request.options.tag = tag
    return question
  }

  /// What is asked in turn of one URL.
  static func all(_ request: NetOptRequest, expecting expectation: Expectation) throws -> [Question] {
    if case .anything = expectation { return [try Question(request, number: nil)] }
    return try (0..<most).map { try Question(request, number: $0) }
  }
}
