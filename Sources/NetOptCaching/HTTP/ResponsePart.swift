import NetOptCore

/// The part of a stored response that answers a request: all of it, one byte range, only its head, or a 304
/// (RFC 9110, sections 14 and 15.4.5).
package enum ResponsePart: Hashable, Sendable {
  /// The whole response.
  case whole
  /// A byte range of the body, with status 206.
  case bytes(Range<Int>)
  /// Only the head.
  case head
  /// Status 304 without a body, because the caller already has the response.
  case notModified

  /// Determines which part of an entry answers a request.
  ///
  /// - Returns: `nil` when the origin must answer, because the request has several ranges, or a range that is
  ///   malformed or begins after the end of the body.
  package init?(of entry: CacheEntry, for request: CacheRequest) {
    if request.conditions.isNotModified(entry) {
      self = .notModified
    } else if request.method == .head {
      self = .head
    } else if let text = request.range, request.conditions.allowRange(of: entry), entry.status == 200 {
      guard let range = Self.range(text, of: entry.body.count) else { return nil }
      self = .bytes(range)
    } else {
      self = .whole
    }
  }

  /// Parses `bytes=a-b`, `bytes=a-` or `bytes=-n` for a body of `length` bytes (RFC 9110, section 14.1.2).
  /// `nil` for any other text, and for a range that contains no byte of the body.
  static func range(_ text: String, of length: Int) -> Range<Int>? {
    let text = text.loweredASCII
    guard text.hasPrefix("bytes="), !text.contains(",") else { return nil }
    let bounds = text.dropFirst(6).split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
    guard bounds.count == 2 else { return nil }
    let first = FieldText.trimmed(bounds[0])
    let last = FieldText.trimmed(bounds[1])
    if first.isEmpty {
      guard let count = number(last), count > 0, length > 0 else { return nil }
      return max(length - count, 0)..<length
    }
    guard let start = number(first), start < length else { return nil }
    if last.isEmpty { return start..<length }
    guard let end = number(last), end >= start else { return nil }
    return start..<(min(end, length - 1) + 1)
  }

  /// Parses decimal digits. The result is `Int.max - 1` for a number that is too large for an `Int`.
  private static func number(_ text: Substring) -> Int? {
    guard !text.isEmpty, text.utf8.allSatisfy(ByteClass.isDigit) else { return nil }
    return Int(text) ?? Int.max - 1
  }
}
