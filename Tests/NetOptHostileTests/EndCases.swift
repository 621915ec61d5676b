import NetOptCore

/// HTTP/1.1 connections that end too early or in a wrong way (RFC 9112, sections 8 and 9.8; RFC 8446, section
/// 6.1).
enum EndCases {
  static let all: [HostileCase] = .together(heads, bodies, silence, alerts)

  /// The connection ends before the response or within its head. In the scenario `second-tunnel-without-end`
  /// of `TunnelTests`, the server ends the connection instead of responding.
  private static let heads: [HostileCase] = .fails(
    as: .lost,
    [
      "second-tunnel-without-end", "end-before-the-head", "reset-before-the-head", "end-in-the-version",
      "end-in-the-status-line",
      "end-behind-the-status-line", "end-in-a-name", "end-behind-a-line", "end-in-the-last-line-end",
      "end-behind-length", "reset-in-the-status-line", "reset-behind-a-line", "end-in-a-1xx",
    ])

  /// The connection ends within the body, or its end is the end of the body.
  private static let bodies: [HostileCase] = .together(
    .answers([
      "end-of-a-body-without-length", "end-of-a-body-of-http-1-0", "connection-close-and-whole",
      "keep-alive-and-the-end",
    ]),
    .answers(with: ExpectedAnswer(body: .empty), ["end-of-an-empty-body-without-length"]),
    // With a reset, the client may lose bytes that it has not read yet, even the head.
    .fails(as: .lost, ["reset-in-a-body-with-length", "reset-in-a-body-without-length"]),
    .fails(["end-in-a-body-with-length", "end-before-a-body-with-length"]))

  /// The server stops sending and leaves the connection open.
  private static let silence: [HostileCase] = .fails(
    as: .slow,
    [
      "silence-before-the-head", "silence-in-the-head", "silence-in-a-body-with-length",
      "silence-in-a-body-without-length", "silence-in-a-chunk",
    ]
  ) { $0.timeout = .milliseconds(300) }

  /// Ends of TLS connections. A body that ends with the connection is complete only if the server sends
  /// close_notify before the end.
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

  /// The cases that exist for both versions of TLS. `version` is 12 for TLS 1.2 and 13 for TLS 1.3.
  private static func alerts(ofVersion version: Int) -> [HostileCase] {
    // The names of scenarios in which the connection ends without close_notify begin with this text.
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
