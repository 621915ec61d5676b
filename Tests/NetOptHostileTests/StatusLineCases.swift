import NetOptCore

/// Odd status lines, and interim responses (RFC 9112, section 4; RFC 9110, section 15).
enum StatusLineCases {
  static let all: [HostileCase] = .together(statuses, versions, urgent, switching, interim)

  /// Odd statuses. A valid status has three digits, from 100 to 599. A client may also accept a status from
  /// 600 to 999, and then treats it like a 5xx. It must reject everything else.
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

  /// Versions of HTTP, and bytes that are no status line.
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

  /// A byte of TCP urgent data before the response. Without TLS, it comes before the status line. With TLS,
  /// it comes before a TLS record, which the client then cannot read.
  private static let urgent: [HostileCase] = .fails(as: .lost, ["urgent-byte-before"]) { $0.isOfTCP = true }

  /// Status 101, which switches to another protocol (RFC 9110, section 7.8). The client has not asked for
  /// one.
  private static let switching: [HostileCase] = .fails(
    as: .lost,
    [
      "switching-unasked", "switching-to-h2c", "switching-without-upgrade", "switching-then-an-answer",
    ])

  /// Interim responses (1xx) before the final response.
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
