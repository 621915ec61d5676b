import NetOptCore

/// Endless HTTP/2 frames that cost the client more than the server (RFC 9113, section 10.5). A client may
/// accept them until its deadline, as long as they neither take memory nor block the event loop.
enum H2FloodCases {
  /// Kinds of frames that are not a part of a response.
  private static let kinds = [
    "pings", "ping-acks", "settings", "empty-settings", "settings-acks", "window-updates",
    "stream-window-updates", "priorities", "priorities-of-the-stream", "unknown-frames",
    "resets-of-idle-streams", "goaways",
  ]

  static let all: [HostileCase] = [HostileCase].h2(endless, heads, answered, bodies).map { hostile in
    var hostile = hostile
    hostile.isFlood = true
    return hostile
  }

  /// Endless frames instead of the response, or between its head and its end.
  private static let endless: [HostileCase] = .fails(
    as: .lostOrSlow,
    kinds.map { "flood-of-\($0)" } + [
      "flood-of-empty-data", "flood-of-padded-data", "flood-of-heads-on-even-streams",
    ]
  ) {
    $0.timeout = .milliseconds(500)
    $0.mayStall = true
  }

  /// Endless heads, trailers and interim responses. They exceed the limits of the client.
  private static let heads: [HostileCase] = .fails(
    as: .lostSlowOrOversized,
    [
      "flood-of-continuations", "flood-of-large-continuations", "flood-of-empty-continuations",
      "flood-of-continuations-of-table-sizes", "flood-of-continuations-of-indexed-fields",
      "flood-of-hints", "flood-of-trailers",
    ]
  ) {
    $0.timeout = .milliseconds(500)
    $0.mayStall = true
  }

  /// Very many frames before the right response, endless frames after it, and a response in very small
  /// frames.
  private static let answered: [HostileCase] = .together(
    .either(
      or: .lost,
      kinds.map { "many-\($0)-then-the-answer" } + ["many-empty-data-then-the-answer"]
    ) { $0.timeout = .seconds(5) },
    .either(or: .lostOrOversized, ["many-hints-then-the-answer"]) { $0.timeout = .seconds(5) },
    .either(
      or: .lost,
      ["flood-of-answers", "flood-of-resets-of-the-stream", "flood-of-data-on-the-closed-stream"]
    ) { $0.mayStall = true },
    .answers(["answer-in-data-of-a-byte"]))

  /// Endless bodies.
  private static let bodies: [HostileCase] = .fails(
    as: .endless, ["flood-of-data-of-a-byte", "flood-of-data", "data-beyond-the-window"]
  ) { $0.mayStall = true }
}
