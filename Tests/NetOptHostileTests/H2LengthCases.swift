import NetOptCore

/// HTTP/2 responses with a Content-Length, and what comes after that number of bytes (RFC 9113, section
/// 8.1.1).
enum H2LengthCases {
  static let all: [HostileCase] = .h2(announced, ended, goOn, breakOff, short)

  /// Valid and invalid Content-Lengths, and responses that must have no body.
  private static let announced: [HostileCase] = .together(
    .answers(["length-right"]),
    .fails(
      as: .lost,
      [
        "length-too-long", "length-too-short", "length-zero-with-body", "length-without-body",
        "length-two-different", "length-negative", "length-plus", "length-1e30", "length-letters",
        "length-empty", "no-content-with-data",
      ]),
    .either(or: .lost, ["length-two-equal", "length-list"]),
    .fails(as: .lost, ["not-modified-with-data"]) { $0.headers = ["If-None-Match": "\"1\""] },
    .either(with: ExpectedAnswer(status: 204, body: .empty), or: .lost, ["no-content-with-length"]),
    .either(with: ExpectedAnswer(body: .empty), or: .lost, ["head-with-data"]) { $0.method = .head })

  /// Complete responses: the stream ends properly after the last byte of the body.
  private static let ended: [HostileCase] = .answers(
    [
      "then-the-end", "then-a-padded-end", "then-trailers", "then-empty-data-and-the-end",
      "then-goaway-and-the-end",
    ].flatMap(ways))

  /// Responses that go on after the announced bytes: with more bytes, or with trailers that do not end the
  /// stream.
  private static let goOn: [HostileCase] = .fails(
    as: .lost,
    ["then-more-and-the-end", "then-more", "then-more-and-trailers", "then-open-trailers"]
      .flatMap(ways) + ["counted-then-more-in-many-records"])

  /// All announced bytes arrive, but the stream does not end properly. So the response is incomplete (RFC
  /// 9113, section 8.1).
  private static let breakOff: [HostileCase] = .together(
    .fails(as: .lost, ["0", "1", "2", "8", "b"].flatMap { ways("then-rst-\($0)") }),
    .fails(
      as: .lost, ["then-close", "then-fin", "then-tcp-reset"].flatMap(ways)),
    .fails(as: .lost, ways("then-goaway-without-it")) { $0.isUnprocessed = true },
    .fails(as: .slow, ways("then-silence")) { $0.timeout = .milliseconds(300) })

  /// Responses with fewer bytes than announced. nghttp2 rejects them with RST_STREAM. It cannot send this
  /// frame any more when the connection or the stream has ended.
  private static let short: [HostileCase] = .together(
    .fails(
      as: .lost,
      ends.flatMap { end in ["", "-rst", "-data", "-bad", "-close"].flatMap { ways("short-\(end)\($0)") } }
        + ["counted-short-and-large-then-close"]),
    .fails(as: .lost, ends.flatMap { ways("short-\($0)-away") }) { $0.isUnprocessed = true })

  /// How the stream ends although bytes of the body are missing: with an empty frame, with trailers, or with
  /// a part of these bytes.
  private static let ends = ["end", "trailers", "some"]

  /// The names of the three forms of a scenario: all frames in one TLS record; each frame in its own record;
  /// or the frames after the body 50 ms later than the others.
  private static func ways(_ name: String) -> [String] {
    ["counted-\(name)", "counted-\(name)-by-records", "counted-\(name)-later"]
  }
}
