import NetOptCore

/// HTTP/2 responses that end too early or incorrectly (RFC 9113, sections 5.4 and 8.1).
enum H2EndCases {
  static let all: [HostileCase] = .h2(resets, early, connections, goaways, whole, coded)

  /// All error codes except HTTP_1_1_REQUIRED.
  private static let codes = (0...12).map { String($0, radix: 16) } + ["ff", "ffffffff"]

  private static let resets: [HostileCase] = .together(
    .fails(as: .lost, codes.flatMap { both("rst-\($0)-in-the-body") }),
    // HTTP_1_1_REQUIRED: over HTTP/1.1 the server gives a right response.
    .either(
      or: .lost,
      [
        "rst-d-before-the-head", "rst-d-behind-the-head", "rst-d-in-the-body", "rst-d-in-a-body-with-length",
      ].flatMap(both)),
    ["0", "1", "2", "7", "8", "b"].flatMap { code in
      [HostileCase].fails(
        as: .lost,
        ["before-the-head", "behind-the-head", "in-a-body-with-length"].flatMap { both("rst-\(code)-\($0)") }
      ) { $0.isUnprocessed = code == "7" }
    })

  /// Responses to requests whose body is still being sent. The client may read these responses, but must not
  /// take an incomplete one as complete. While libcurl waits for more of the request body it may not read.
  private static let early: [HostileCase] = .together(
    .answers(
      ["early-whole", "early-whole-by-an-empty-frame", "early-whole-by-trailers"].flatMap(both)
    ) { $0.isUploading = true },
    .fails(as: .lostOrSlow, ["early-cut", "early-cut-behind-the-head"].flatMap(both)) {
      $0.isUploading = true
    })

  /// A scenario in one record, and in several.
  private static func both(_ name: String) -> [String] { [name, name + "-by-records"] }

  private static let moments = [
    "before-the-head", "in-a-head", "behind-the-head", "in-the-body", "in-a-frame", "in-the-head-of-a-frame",
    "in-a-body-with-length",
  ]

  private static let connections: [HostileCase] = .together(
    .fails(as: .lost, ["close", "fin", "reset", "alert"].flatMap { end in moments.map { "\(end)-\($0)" } }),
    .fails(as: .slow, moments.map { "silence-\($0)" }) { $0.timeout = .milliseconds(300) },
    .fails(as: .lostOrSlow, ["silence-with-pings"]) { $0.timeout = .milliseconds(300) })

  /// Section 6.8: streams up to the last stream id continue; the server did not process those above.
  private static let goaways: [HostileCase] = .together(
    .answers([
      "goaway-then-the-rest", "goaway-before-the-head-then-the-answer",
      "goaway-of-a-huge-stream-then-the-rest", "goaway-in-two-steps",
    ]),
    .fails(
      as: .lost,
      [
        "script", "goaway-then-the-end", "goaway-with-error-then-the-end",
        "goaway-before-the-head-then-the-end",
      ]),
    .fails(
      as: .lost,
      [
        "goaway-that-leaves-the-stream-out", "goaway-before-the-head-that-leaves-it-out",
        "goaway-before-the-head-with-error", "goaway-enhance-your-calm",
      ]
    ) { $0.isUnprocessed = true },
    .either(
      or: .lost, ["goaway-that-leaves-the-stream-out-then-the-rest", "goaway-that-grows"]
    ) { $0.isUnprocessed = true },
    .either(or: .lost, ["goaway-with-error-then-the-rest"]))

  private static let whole: [HostileCase] = .answers([
    "whole-then-fin", "whole-then-rst-no-error", "end-by-an-empty-frame",
  ])

  private static let coded: [HostileCase] = .together(
    .answers(with: CodingCases.text, ["gzip", "deflate", "br", "zstd"].map { "\($0)-whole" }),
    .fails(
      as: .undecodable,
      ["gzip", "deflate", "br", "zstd"].flatMap { ["\($0)-cut-at-the-last-byte", "\($0)-cut"] }
        + ["gzip-cut-before-crc"]))
}
