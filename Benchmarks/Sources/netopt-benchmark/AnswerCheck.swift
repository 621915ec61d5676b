import NetOpt

/// Says of one answer after the other whether it belongs to its question and is whole. `raw-libcurl` does the same (question.h).
struct AnswerCheck {
  private let expectation: Expectation
  private var digits = ""
  /// All of the body, for an echo.
  private var expected: [UInt8]
  private var received = 0
  private var hasOtherContent = false

  init(_ expectation: Expectation) {
    self.expectation = expectation
    expected = if case .echo(let length) = expectation { Array(repeating: 0x78, count: length) } else { [] }
  }

  mutating func begin(_ question: Question) {
    received = 0
    hasOtherContent = false
    digits = question.digits
    if case .echo = expectation { for (index, digit) in digits.utf8.enumerated() { expected[index] = digit } }
  }

  /// Looks at the next chunk of the answer's body.
  mutating func take(_ chunk: [UInt8]) {
    let offset = received
    received += chunk.count
    switch expectation {
    case .anything: return
    case .echo(let length):
      if received > length || !expected[offset..<received].elementsEqual(chunk) { hasOtherContent = true }
    case .words(let length):
      if received > length || !Self.areWords(chunk, from: offset) { hasOtherContent = true }
    }
  }

  /// Whether the response, with the chunks that were taken, is the answer.
  func isAnswer(_ response: NetOptResponse) -> Bool {
    switch expectation {
    case .anything: response.status < 400
    case .echo(let length): response.status == 200 && received == length && !hasOtherContent
    case .words(let length):
      response.status == 200 && received == length && !hasOtherContent
        && response.head.first("question") == digits
    }
  }

  /// What came instead, for people.
  func complaint(about response: NetOptResponse) -> String {
    "question \(digits): status \(response.status), \(received) bytes\(hasOtherContent ? ", with other content" : "")"
  }

  /// Whether the first and the last whole word of a chunk are those of their place. A chunk that is lost, doubled or of another
  /// place is found by its ends; all words would cost a tenth of the transfer.
  private static func areWords(_ chunk: [UInt8], from offset: Int) -> Bool {
    let skipped = (8 - offset % 8) % 8
    guard chunk.count >= skipped + 8 else { return true }
    let last = skipped + (chunk.count - skipped) / 8 * 8 - 8
    return chunk.withUnsafeBytes { bytes in
      func isWord(_ index: Int) -> Bool {
        bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self) == UInt64((offset + index) / 8)
      }
      return isWord(skipped) && isWord(last)
    }
  }
}
