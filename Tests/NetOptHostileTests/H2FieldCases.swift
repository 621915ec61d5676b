import NetOptCore

/// Odd fields and field blocks of HTTP/2 responses (RFC 9113, section 8; RFC 7541).
enum H2FieldCases {
  static let all: [HostileCase] = .h2(names, values, statuses, interim, trailers, compression)

  /// Names that make a response malformed (RFC 9113, section 8.2). nghttp2 ignores fields with some of these
  /// names instead.
  private static let names: [HostileCase] = .together(
    .answers(["good"]),
    .fails(
      as: .lost,
      [
        "name-in-upper-case", "connection", "keep-alive", "transfer-encoding", "upgrade", "proxy-connection",
        "two-status", "pseudo-field-of-requests", "pseudo-field-unknown",
      ]),
    .either(
      or: .lost,
      [
        "name-empty", "name-with-space", "name-with-colon", "name-with-nul", "name-with-lf", "name-8-bit",
      ]))

  /// Odd values of fields.
  private static let values: [HostileCase] = .together(
    .either(
      with: ExpectedAnswer(absent: ["x-forged"]), or: .lost,
      [
        "value-with-nul", "value-with-lf", "value-with-cr-lf", "value-with-cr",
        "value-with-cr-lf-and-the-head-s-end",
      ]),
    .either(
      with: ExpectedAnswer(fields: ["x-odd": "one"]), or: .lost, ["value-with-spaces-around"]),
    .answers(["value-8-bit", "value-like-a-status-line", "long-value"]))

  /// Responses without a valid status at their beginning.
  private static let statuses: [HostileCase] = .fails(
    as: .lost,
    [
      "no-status", "no-field-at-all", "status-behind-a-field", "two-status-first", "status-empty",
      "status-099", "status-000", "status-20", "status-1000", "status-plus", "status-with-reason",
      "status-101", "status-of-http1",
    ])

  /// Interim responses (1xx), and a response without a body.
  private static let interim: [HostileCase] = .together(
    .answers(with: ExpectedAnswer(absent: ["x-hint", "link"]), ["hints-before-the-answer"]),
    .fails(as: .lost, ["hints-that-end-the-stream", "hints-then-data", "switching-then-an-answer"]),
    .answers(with: ExpectedAnswer(body: .empty), ["status-200-ends-without-body"]))

  /// Fields after the body, and second heads.
  private static let trailers: [HostileCase] = .together(
    .answers(with: ExpectedAnswer(absent: ["x-trailer"]), ["trailers-good", "trailers-change-nothing"]),
    .fails(
      as: .lost,
      [
        "trailers-with-status", "trailers-that-do-not-end", "trailers-in-upper-case",
        "trailers-with-connection", "head-twice",
      ]),
    .either(or: .lost, ["trailers-twice", "data-behind-trailers"]))

  /// HPACK (RFC 7541). A field block that cannot be decoded ends the connection. A client may refuse a very
  /// large one.
  private static let compression: [HostileCase] = .together(
    .fails(
      as: .lost,
      [
        "hpack-index-0", "hpack-index-not-there", "hpack-index-huge", "hpack-name-index-not-there",
        "hpack-integer-without-end", "hpack-integer-cut", "hpack-string-cut", "hpack-name-cut",
        "hpack-value-missing", "hpack-string-too-long", "hpack-huffman-end-of-string",
        "hpack-huffman-padding-with-zeros", "hpack-huffman-padding-of-a-byte", "hpack-table-size-too-large",
        "hpack-table-size-behind-a-field", "hpack-empty-block-with-end",
      ]),
    .answers(["hpack-table-size-zero", "hpack-entry-larger-than-the-table"]),
    .answers(with: ExpectedAnswer(fields: ["x-odd": "one"]), ["hpack-never-indexed"]),
    .either(or: .lostOrOversized, ["hpack-many-fields", "hpack-block-in-pieces-of-a-byte"]),
    .either(or: .lostOrOversized, ["hpack-a-megabyte-of-fields"]) { $0.isFlood = true },
    .fails(as: .lostOrOversized, ["hpack-entries-again-and-again"]) { $0.isFlood = true })
}

extension [HostileCase] {
  /// Turns groups of cases into HTTP/2 cases: adds `h2-` to the names of their scenarios, and lets their
  /// requests use TLS.
  static func h2(_ groups: Self...) -> Self {
    groups.joined().map { hostile in
      var hostile = hostile
      hostile.name = "h2-\(hostile.name)"
      hostile.access = .tls
      return hostile
    }
  }
}
