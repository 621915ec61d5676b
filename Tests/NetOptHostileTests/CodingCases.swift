import NetOptCore

/// Bodies with a content coding that are whole, incomplete, damaged or followed by further bytes (RFC 9110,
/// section 8.4).
enum CodingCases {
  /// The response with the text that the server encodes (`content` in `http1_codings.py`).
  static let text = ExpectedAnswer(
    body: .usualAnd(
      " and some more of it, which is not all the same: 0123456789 abcdefghijklmnopqrstuvwxyz"))

  /// The response with this text and 20,000 more bytes. The decoded body is larger than the buffer of the
  /// client in `HostileRun`, so the transfer pauses before the whole body is decoded.
  private static let largeText = ExpectedAnswer(
    body: .usualAnd(
      " and some more of it, which is not all the same: 0123456789 abcdefghijklmnopqrstuvwxyz"
        + String(repeating: "\0", count: 20_000)))

  static let all: [HostileCase] = .together(each, gzip, others)

  /// The cases that exist for every coding. Most exist for each way in which HTTP/1.1 ends a body: by its
  /// length, by chunks, or by the end of the connection.
  private static let each: [HostileCase] = ["gzip", "deflate", "br", "zstd"].flatMap { coding in
    let framed = ["length", "chunked", "close"].flatMap { framing in
      [HostileCase].answers(with: text, ["\(coding)-whole-\(framing)"])
        + .fails(
          as: .undecodable,
          [
            "\(coding)-cut-in-data-\(framing)", "\(coding)-cut-at-the-last-byte-\(framing)",
            "\(coding)-trailing-bytes-\(framing)",
          ])
    }
    let large = ["length", "chunked", "close"].flatMap { framing in
      [HostileCase].answers(with: largeText, ["\(coding)-large-whole-\(framing)"])
        + .fails(
          as: .undecodable,
          ["trailing-byte", "trailing-damaged-stream", "cut"].map { "\(coding)-large-\($0)-\(framing)" })
    }
    return framed + large
      + .fails(as: .undecodable, ["\(coding)-cut-in-head", "\(coding)-is-text", "\(coding)-empty-close"])
      + .either(with: ExpectedAnswer(body: .empty), or: .undecodable, ["\(coding)-empty"])
  }

  /// Cases of gzip alone (RFC 1952).
  private static let gzip: [HostileCase] = .together(
    .fails(
      as: .undecodable,
      [
        "gzip-cut-after-head", "gzip-cut-before-crc", "gzip-cut-in-crc", "gzip-cut-before-length",
        "gzip-wrong-crc", "gzip-wrong-length", "gzip-damaged", "gzip-second-member-cut",
        "gzip-twice-inner-cut", "gzip-shorter-than-length", "gzip-reserved-flag",
      ]),
    .either(with: text, or: .undecodable, ["gzip-trailing-zero", "gzip-twice", "gzip-on-two-lines"]),
    .either(with: text, or: .undecodable, ["gzip-20-times"]),
    .either(
      with: ExpectedAnswer(
        body: .usualAnd(
          " and some more of it, which is not all the same: 0123456789 abcdefghijklmnopqrstuvwxyz, second member"
        )), or: .undecodable, ["gzip-two-members"]),
    .either(with: ExpectedAnswer(body: .empty), or: .undecodable, ["gzip-long-name"]) { $0.isFlood = true },
    .fails(as: [.bodyTooLarge], ["gzip-bomb"]) { $0.isFlood = true })

  /// Cases of the other codings, and of an unknown coding.
  private static let others: [HostileCase] = .together(
    .fails(
      as: .undecodable,
      [
        "deflate-cut-after-head", "deflate-cut-before-adler", "deflate-wrong-adler", "deflate-raw-cut",
        "br-cut-after-head", "zstd-cut-after-head",
      ]),
    .either(with: text, or: .undecodable, ["deflate-raw", "coding-unknown"]))
}
