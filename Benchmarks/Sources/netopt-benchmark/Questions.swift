import NetOpt

/// A request that asks a question: a number in the URL's query, which the origin puts into its answer.
struct Question: Sendable {
  static let digitCount = 6
  /// No question is asked by two streams at once, and a stream asks one again only after its others. There are few, so that a
  /// client that parses each URL once finds it again.
  private static let mostPerStream = 4
  private static let most = 512

  let request: HTTPRequest
  /// Empty when nothing is asked.
  let digits: String

  /// - Parameter number: what to ask; `nil` to ask nothing.
  init(_ request: HTTPRequest, number: Int?) throws {
    guard let number else {
      (self.request, digits) = (request, "")
      return
    }
    let text = String(number % 1_000_000)
    digits = String(repeating: "0", count: Self.digitCount - text.count) + text
    var request = request
    request.url = try HTTPURL("\(request.url)?\(digits)")
    self.request = request
  }

  /// The questions of all streams, those of the first one first.
  static func all(
    _ request: HTTPRequest, streams: Int, expecting expectation: Expectation
  ) throws -> [Question] {
    if case .anything = expectation { return [try Question(request, number: nil)] }
    let each = max(1, min(mostPerStream, most / streams))
    return try (0..<streams * each).map { try Question(request, number: $0) }
  }
}
