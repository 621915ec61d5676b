import NetOptCore

/// Status lines, and responses before the final response (RFC 9112, section 4; RFC 9110, section 15).
enum StatusLineCases {
  static let all: [HostileCase] = .together(statuses, versions, urgent, switching, interim)

  /// A status has three digits from 100 to 599; any other three digits count as a 5xx.
  private static let statuses: [HostileCase] = .together(
    .fails([
      "status-099", "status-000", "status-1000", "status-20", "status-2-space-0", "status-minus",
      "status-plus", "status-letters", "status-hex", "status-missing", "status-missing-with-space",
    ]),
    .either(with: ExpectedAnswer(status: 600), ["status-600"]),
    .either(with: ExpectedAnswer(status: 999), ["status-999"]),
    .answers(with: ExpectedAnswer(status: 299), ["status-299"]),
    .answers(["status-no-reason", "status-8-bit-reason"]),
    .either([
      "status-no-space-behind", "status-glued-to-reason", "status-two-spaces", "status-tab",
      "status-nul-in-reason", "status-cr-in-reason",
    ]),
    .either(or: .oversized, ["status-long-reason"]))

  private static let versions: [HostileCase] = .together(
    .fails([
      "version-2", "version-2-0", "version-3", "version-2-no-reason", "version-3-no-reason", "version-0-9",
      "version-1", "version-1-10", "version-11-1",
      "version-comma", "version-missing", "version-lower-case", "version-icy", "version-rtsp",
      "version-space-before", "version-nul-before", "version-byte-order-mark", "no-head",
      "no-head-and-silence", "frames-of-http2", "record-of-tls", "a-request-comes-back",
    ]),
    // RFC 9110, section 2.5: a client may treat a higher minor version as its own version.
    .either(["version-1-2", "version-empty-line-before"]))

  /// Behind a TLS proxy the byte breaks the TLS record.
  private static let urgent: [HostileCase] = .fails(as: .lost, ["urgent-byte-before"]) { $0.isOfTCP = true }

  /// RFC 9110, section 7.8: the client has not asked for another protocol.
  private static let switching: [HostileCase] = .fails(
    as: .lost,
    [
      "switching-unasked", "switching-to-h2c", "switching-without-upgrade", "switching-then-an-answer",
    ])

  private static let interim: [HostileCase] = .together(
    .answers(
      with: ExpectedAnswer(absent: ["X-Hint", "Link"]),
      [
        "hints-before-the-answer", "continue-before-the-answer", "many-1xx-before-the-answer",
        "status-199-before-the-answer", "hints-in-pieces-of-a-byte",
      ]),
    .fails(as: .lost, ["only-1xx-then-the-end"]),
    // A 1xx response has no body, so the bytes after it are not a status line.
    .fails(["hints-with-a-body"]))
}
