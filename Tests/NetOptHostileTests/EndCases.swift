import NetOptCore

/// Connections that end too early or incorrectly (RFC 9112, sections 8 and 9.8; RFC 8446, section 6.1).
enum EndCases {
  static let all: [HostileCase] = .together(heads, bodies, silence, alerts)

  private static let heads: [HostileCase] = .fails(
    as: .lost,
    [
      "second-tunnel-without-end", "end-before-the-head", "reset-before-the-head", "end-in-the-version",
      "end-in-the-status-line",
      "end-behind-the-status-line", "end-in-a-name", "end-behind-a-line", "end-in-the-last-line-end",
      "end-behind-length", "reset-in-the-status-line", "reset-behind-a-line", "end-in-a-1xx",
    ])

  private static let bodies: [HostileCase] = .together(
    .answers([
      "end-of-a-body-without-length", "end-of-a-body-of-http-1-0", "connection-close-and-whole",
      "keep-alive-and-the-end",
    ]),
    .answers(with: ExpectedAnswer(body: .empty), ["end-of-an-empty-body-without-length"]),
    // A reset may overtake the head.
    .fails(as: .lost, ["reset-in-a-body-with-length", "reset-in-a-body-without-length"]),
    .fails(["end-in-a-body-with-length", "end-before-a-body-with-length"]))

  private static let silence: [HostileCase] = .fails(
    as: .slow,
    [
      "silence-before-the-head", "silence-in-the-head", "silence-in-a-body-with-length",
      "silence-in-a-body-without-length", "silence-in-a-chunk",
    ]
  ) { $0.timeout = .milliseconds(300) }

  /// A body that ends with the connection is complete only after close_notify.
  private static let alerts: [HostileCase] = [HostileCase].together(
    alerts(ofVersion: 12), alerts(ofVersion: 13),
    .answers(["tls-close-notify-and-open"]),
    .fails(
      as: .lost,
      [
        "tls-close-notify-in-a-body-with-length", "tls-close-notify-in-the-head", "tls-record-cut",
        "tls-reset-no-length",
      ])
  ).map { hostile in
    var hostile = hostile
    hostile.access = .tls
    return hostile
  }

  private static func alerts(ofVersion version: Int) -> [HostileCase] {
    let cut = "tls\(version)-without-close-notify"
    return .together(
      .fails(
        as: .lost,
        [
          "\(cut)-no-length", "\(cut)-empty", "\(cut)-http-1-0", "\(cut)-length-cut", "\(cut)-chunked-cut",
          "\(cut)-head", "\(cut)-nothing", "tls\(version)-fatal-alert-no-length",
          "tls\(version)-half-a-close-notify-no-length",
        ]),
      .answers(["\(cut)-length", "\(cut)-chunked", "tls\(version)-close-notify-no-length"]))
  }
}
