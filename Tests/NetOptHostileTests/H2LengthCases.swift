import NetOptCore

/// HTTP/2 responses with a Content-Length, and what follows that many bytes (RFC 9113, section 8.1.1).
enum H2LengthCases {
  static let all: [HostileCase] = .h2(announced, ended, goOn, breakOff, short)

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

  /// The end of the stream may arrive after the last byte.
  private static let ended: [HostileCase] = .answers(
    [
      "then-the-end", "then-a-padded-end", "then-trailers", "then-empty-data-and-the-end",
      "then-goaway-and-the-end",
    ].flatMap(ways))

  /// Responses with more bytes than announced.
  private static let goOn: [HostileCase] = .fails(
    as: .lost,
    ["then-more-and-the-end", "then-more", "then-more-and-trailers", "then-open-trailers"]
      .flatMap(ways) + ["counted-then-more-in-many-records"])

  /// The stream does not end: the response is incomplete, although all bytes arrived (section 8.1).
  private static let breakOff: [HostileCase] = .together(
    .fails(as: .lost, ["0", "1", "2", "8", "b"].flatMap { ways("then-rst-\($0)") }),
    .fails(
      as: .lost, ["then-close", "then-fin", "then-tcp-reset"].flatMap(ways)),
    .fails(as: .lost, ways("then-goaway-without-it")) { $0.isUnprocessed = true },
    .fails(as: .slow, ways("then-silence")) { $0.timeout = .milliseconds(300) })

  /// Responses with fewer bytes than announced. nghttp2 rejects them with RST_STREAM, which is never sent
  /// when the connection or the stream is gone.
  private static let short: [HostileCase] = .together(
    .fails(
      as: .lost,
      ends.flatMap { end in ["", "-rst", "-data", "-bad", "-close"].flatMap { ways("short-\(end)\($0)") } }
        + ["counted-short-and-large-then-close"]),
    .fails(as: .lost, ends.flatMap { ways("short-\($0)-away") }) { $0.isUnprocessed = true })

  private static let ends = ["end", "trailers", "some"]

  /// All in one record, each frame in its own record, or everything after the last byte a while later.
  private static func ways(_ name: String) -> [String] {
    ["counted-\(name)", "counted-\(name)-by-records", "counted-\(name)-later"]
  }
}
