import NetOptCore

/// Responses whose body has an odd or a wrong end (RFC 9112, sections 6 and 7).
enum BodyCases {
  static let all: [HostileCase] = .together(lengths, codings, sizes, chunks, trailers, bodiless)

  /// Content-Length (RFC 9112, section 6.3). A client must reject an invalid length, and a body that is
  /// shorter than its length. It may accept several lengths if they are equal.
  private static let lengths: [HostileCase] = .together(
    .fails([
      "length-two-different", "length-two-different-reversed", "length-list-different",
      "length-list-different-reversed", "length-negative", "length-plus", "length-1e30",
      "length-2-to-the-63", "length-2-to-the-64-and-9", "length-hex", "length-empty",
      "length-letters-behind", "length-two-words", "length-decimal-point", "length-semicolon",
      "length-quoted", "length-too-long", "length-too-long-reset",
    ]),
    .either(["length-two-equal", "length-list-equal", "length-list-with-empty-element"]),
    .answers(["length-zeros-before", "length-spaces-around", "length-nothing-before"]),
    .either(with: ExpectedAnswer(body: .usualWithout(1)), ["length-too-short"]),
    .either(with: ExpectedAnswer(body: .empty), ["length-zero-with-body"]))

  /// The values of Content-Length in responses that are chunked too; "right" stands for the right length.
  private static let sizesBesideChunks = ["0", "3", "right", "1000"]

  /// Transfer-Encoding, also together with Content-Length (RFC 9112, section 6.1).
  private static let codings: [HostileCase] = .together(
    .either(
      or: .undecodable,
      [
        "length-before-chunked", "length-behind-chunked", "length-odd-before-chunked", "coding-identity",
        "coding-identity-and-length", "coding-chunked-identity", "coding-identity-chunked",
        "coding-chunked-with-parameter", "coding-chunked-quoted", "coding-empty",
        "coding-chunked-over-http-1-0",
      ] + sizesBesideChunks.flatMap { ["chunked-and-length-\($0)", "chunked-and-length-\($0)-body-later"] }),
    .fails(
      sizesBesideChunks.flatMap {
        ["chunked-and-length-\($0)-cut", "chunked-and-length-\($0)-cut-in-chunk"]
      }),
    .either(or: .undecodable, ["coding-gzip", "coding-gzip-chunked"]),
    .fails(
      as: .undecodable,
      [
        "coding-chunked-gzip", "coding-chunked-chunked", "coding-chunked-on-two-lines", "coding-xchunked",
        "coding-chunkedx", "coding-vertical-tab",
      ]),
    .answers(["coding-chunked-upper-case"]))

  /// The line before a chunk: its size and extensions (RFC 9112, section 7.1).
  private static let sizes: [HostileCase] = .together(
    .fails([
      "chunk-size-2-to-the-64-and-9", "chunk-size-2-to-the-68", "chunk-size-2-to-the-64-less-1",
      "chunk-size-2-to-the-63", "chunk-size-negative", "chunk-size-plus", "chunk-size-empty",
      "chunk-size-hex-prefix", "chunk-size-no-digit", "chunk-size-underscore", "chunk-size-semicolon-first",
      "chunk-size-too-large", "chunked-body-is-none", "chunk-size-hex-prefix-then-empty-line",
      "chunk-last-then-letter", "chunk-last-then-space-and-digit", "chunk-last-then-cr-and-digit",
      "chunk-last-then-nul",
    ]),
    .either([
      "chunk-size-space-before", "chunk-size-space-behind", "chunk-size-many-zeros-before",
      "chunk-extension-of-a-megabyte", "chunk-extension-with-lf", "chunk-extension-with-cr",
    ]),
    .answers([
      "chunk-size-zeros-before", "chunk-extension", "chunk-extension-quoted", "chunk-last-is-many-zeros",
      "chunk-last-with-extension", "chunks-in-pieces-of-a-byte",
    ]))

  /// The data of chunks, the ends of lines, and the last chunk.
  private static let chunks: [HostileCase] = .together(
    // RFC 9112, section 8: the content is complete when the last chunk has arrived.
    .either(["chunk-line-bare-lf", "chunks-bare-lf", "chunk-last-with-half-an-empty-line"]),
    .fails([
      "chunk-line-bare-cr", "chunk-end-missing", "chunk-end-wrong", "chunk-end-half", "chunk-end-lf-cr",
      "chunk-longer-than-its-size", "chunk-last-missing", "chunk-last-missing-reset",
      "chunk-last-without-line-end", "chunk-last-without-empty-line",
      "chunk-last-then-garbage", "chunk-cut-in-data", "chunk-cut-in-size", "chunk-cut-before-the-first",
    ]),
    // The first empty chunk ends the body; the bytes after it belong to no response.
    .answers(["chunk-last-in-between"]))

  /// Fields after the last chunk (RFC 9112, section 7.1.2). A client must not add them to the fields of the
  /// head (RFC 9110, section 6.5.1).
  private static let trailers: [HostileCase] = .together(
    .answers(
      with: ExpectedAnswer(absent: ["X-Trailer", "X-Other"]),
      ["trailers-good", "trailers-change-nothing", "trailers-with-transfer-encoding"]),
    .either([
      "trailers-without-colon", "trailers-folded", "trailers-like-a-status-line", "trailers-with-nul",
    ]),
    .fails(["trailers-cut", "trailers-cut-behind-a-line", "trailers-reset"]))

  /// Responses that must end with the head: responses to HEAD, and the statuses 204 and 304 (RFC 9112,
  /// section 6.3). The server sends a body, or the length of one, all the same.
  private static let bodiless: [HostileCase] = .together(
    .answers(
      with: ExpectedAnswer(body: .empty), ["head-with-body-at-once", "head-with-chunked-body"]
    ) { $0.method = .head },
    .answers(with: ExpectedAnswer(body: .empty), ["head-with-answer-as-body"]) { $0.method = .head },
    .answers(with: ExpectedAnswer(body: .empty), ["head-with-body-late"]) {
      $0.method = .head
      $0.isLate = true
    },
    .either(
      with: ExpectedAnswer(status: 204, body: .empty),
      [
        "no-content-with-body", "no-content-with-length", "no-content-with-chunks",
        "no-content-with-answer-as-body", "no-content-with-length-and-no-body",
      ]),
    .answers(with: ExpectedAnswer(status: 204, body: .empty), ["no-content-with-body-late"]) {
      $0.isLate = true
    },
    .either(
      with: ExpectedAnswer(status: 304, body: .empty),
      ["not-modified-with-body", "not-modified-with-length", "not-modified-with-answer-as-body"]
    ) {
      $0.headers = ["If-None-Match": "\"1\""]
      $0.mayBeStored = false
    },
    .answers(with: ExpectedAnswer(status: 304, body: .empty), ["not-modified-with-body-late"]) {
      $0.headers = ["If-None-Match": "\"1\""]
      $0.mayBeStored = false
      $0.isLate = true
    })
}
