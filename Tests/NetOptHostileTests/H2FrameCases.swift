import NetOptCore

/// Frames that break the rules of HTTP/2 (RFC 9113, sections 3 to 6).
enum H2FrameCases {
  static let all: [HostileCase] = .h2(frames, messages, control, givenUp, late, prefaces)

  /// Types and sizes of frames (RFC 9113, section 4). The client ignores frames of unknown types. A frame
  /// that is too large is an error.
  private static let frames: [HostileCase] = .together(
    .answers([
      "frame-of-unknown-type", "frame-with-reserved-bit", "frame-with-unknown-flags",
      "frames-in-pieces-of-a-byte",
    ]),
    .fails(
      as: .lost,
      [
        "frame-data-over-size", "frame-data-of-16-megabytes", "frame-head-over-size",
        "frame-unknown-over-size", "frame-settings-over-size", "text-of-http1-alone", "frames-of-noise",
      ]))

  /// Frames of responses: DATA, HEADERS and CONTINUATION.
  private static let messages: [HostileCase] = .together(
    .fails(
      as: .lost,
      [
        "data-before-the-head", "data-alone", "head-padding-too-long", "head-priority-cut",
        "head-on-stream-0", "head-on-an-even-stream", "head-on-an-idle-stream",
        "head-then-data-before-its-end", "head-then-ping-before-its-end", "continuation-of-nothing",
        "continuation-of-another-stream",
      ]),
    // The response was complete before the server broke the rule.
    .either(or: .lost, ["data-behind-the-end", "head-behind-the-end", "head-depends-on-itself"]),
    .answers(["data-padding-right"]))

  /// Frames that control the connection or a stream: SETTINGS, RST_STREAM, PING and WINDOW_UPDATE.
  private static let control: [HostileCase] = .together(
    .fails(as: .lost, ["settings-window-overflows", "window-update-over-2-to-the-31"]),
    .answers([
      "settings-unknown", "settings-table-size-huge", "settings-table-size-zero", "settings-one-stream",
      "settings-window-zero", "rst-behind-the-end", "window-update-behind-the-end",
    ]),
    .answers(["settings-no-streams"]) { $0.mayStall = true },
    .either(or: .lost, ["settings-head-size-zero", "ping-ack-unasked"]),
    .either(or: .lostOrSlow, ["settings-ack-unasked"]) { $0.timeout = .milliseconds(300) })

  /// Frames between the head and the end of the body that make nghttp2 give up the connection. libcurl 7.88
  /// does not tell the call about it, so the call may end only at its deadline.
  private static let givenUp: [HostileCase] = .fails(
    as: .lostOrSlow,
    [
      "text-of-http1", "frames-of-zeros", "data-on-stream-0", "data-on-an-idle-stream",
      "data-on-an-even-stream", "data-padding-too-long", "data-padding-of-all",
      "data-padding-without-length", "continuation-behind-the-end", "priority-on-stream-0",
      "rst-on-stream-0", "rst-on-an-idle-stream", "settings-on-a-stream", "settings-enable-push-2",
      "settings-enable-push-1", "settings-window-over-2-to-the-31", "settings-frame-size-too-small",
      "settings-frame-size-too-large", "push-unasked", "push-and-its-answer", "push-of-an-odd-stream",
      "push-on-stream-0", "ping-on-a-stream", "goaway-on-a-stream", "priority-too-short",
      "rst-too-short", "settings-of-5-bytes", "settings-ack-with-payload", "ping-of-7-bytes",
      "goaway-of-7-bytes", "window-update-of-zero", "window-update-of-zero-on-stream-0",
      "window-update-on-an-idle-stream", "window-update-of-3-bytes",
      "window-update-over-2-to-the-31-in-all",
    ]
  ) { $0.timeout = .milliseconds(300) }

  /// Frames that arrive while no stream is open. The next request gets its response in every case.
  private static let late: [HostileCase] = .together(
    .answers([
      "answer-before-the-next-question", "ping-late", "settings-late", "goaway-late",
      "goaway-with-error-late",
      "data-late", "rst-late", "garbage-late", "half-a-frame-late",
    ]) { $0.isLate = true },
    .answers(["no-streams-late"]) {
      $0.isLate = true
      $0.mayStall = true
    })

  /// Odd first frames of a connection. The first frame of the server must be SETTINGS (RFC 9113, section
  /// 3.4). The server begins like this only on the first connection to a host.
  private static let prefaces: [HostileCase] = .together(
    .fails(
      as: .lost,
      [
        "preface-missing", "preface-is-a-ping", "preface-is-a-head", "preface-is-an-ack", "preface-is-text",
        "preface-is-the-client-s", "preface-is-unknown-frame", "preface-is-goaway",
        "preface-is-goaway-with-error", "preface-frame-size-bad", "preface-window-bad",
      ]
    ) { $0.isOfFirstConnection = true },
    .answers(["preface-one-stream", "preface-window-zero"]) { $0.isOfFirstConnection = true },
    .answers(["preface-no-streams"]) {
      $0.isOfFirstConnection = true
      $0.mayStall = true
    })
}
