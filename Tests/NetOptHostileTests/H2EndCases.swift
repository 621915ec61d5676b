import NetOptCore

/// HTTP/2 responses that end too early or in a wrong way (RFC 9113, sections 5.4 and 8.1).
enum H2EndCases {
  static let all: [HostileCase] = .h2(resets, early, connections, goaways, whole, coded)

  /// The error codes in hexadecimal: all that RFC 9113 defines except HTTP_1_1_REQUIRED (d), and two that it
  /// does not define.
  private static let codes = (0...12).map { String($0, radix: 16) } + ["ff", "ffffffff"]

  /// RST_STREAM ends the response before it is complete.
  private static let resets: [HostileCase] = .together(
    .fails(as: .lost, codes.flatMap { both("rst-\($0)-in-the-body") }),
    // The code d is HTTP_1_1_REQUIRED. If the client repeats the request over HTTP/1.1, it gets the right
    // response.
    .either(
      or: .lost,
      [
        "rst-d-before-the-head", "rst-d-behind-the-head", "rst-d-in-the-body", "rst-d-in-a-body-with-length",
      ].flatMap(both)),
    // The code 7 is REFUSED_STREAM: the server did not process the request.
    ["0", "1", "2", "7", "8", "b"].flatMap { code in
      [HostileCase].fails(
        as: .lost,
        ["before-the-head", "behind-the-head", "in-a-body-with-length"].flatMap { both("rst-\(code)-\($0)") }
      ) { $0.isUnprocessed = code == "7" }
    })

  /// Responses that arrive while the client still sends the body of its request. The client may read such a
  /// response early, but must not take an incomplete one for complete. libcurl sometimes does not read while
  /// it waits for more of the request body: then the call with an incomplete response reaches its deadline.
  private static let early: [HostileCase] = .together(
    .answers(
      ["early-whole", "early-whole-by-an-empty-frame", "early-whole-by-trailers"].flatMap(both)
    ) { $0.isUploading = true },
    .fails(as: .lostOrSlow, ["early-cut", "early-cut-behind-the-head"].flatMap(both)) {
      $0.isUploading = true
    })

  /// The names of the two forms of a scenario: all frames in one TLS record, or each frame in its own record.
  private static func both(_ name: String) -> [String] { [name, name + "-by-records"] }

  /// The moments at which the connection ends or falls silent.
  private static let moments = [
    "before-the-head", "in-a-head", "behind-the-head", "in-the-body", "in-a-frame", "in-the-head-of-a-frame",
    "in-a-body-with-length",
  ]

  /// The connection ends or falls silent while the stream is open. It ends with close_notify and FIN
  /// ("close"), with FIN alone, with a TCP reset, or with a fatal TLS alert.
  private static let connections: [HostileCase] = .together(
    .fails(as: .lost, ["close", "fin", "reset", "alert"].flatMap { end in moments.map { "\(end)-\($0)" } }),
    .fails(as: .slow, moments.map { "silence-\($0)" }) { $0.timeout = .milliseconds(300) },
    .fails(as: .lostOrSlow, ["silence-with-pings"]) { $0.timeout = .milliseconds(300) })

  /// GOAWAY (RFC 9113, section 6.8). The streams up to the last stream that it names go on. The server did
  /// not process the streams above. The scenario "script" sends what a test has set. Here it has set nothing,
  /// so the server only closes the connection.
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

  /// Complete responses. The end of the connection follows the first one, and a reset with NO_ERROR the
  /// second. An empty DATA frame ends the third.
  private static let whole: [HostileCase] = .answers([
    "whole-then-fin", "whole-then-rst-no-error", "end-by-an-empty-frame",
  ])

  /// Bodies with a content coding. The stream ends properly, even if the coded body is incomplete.
  private static let coded: [HostileCase] = .together(
    .answers(with: CodingCases.text, ["gzip", "deflate", "br", "zstd"].map { "\($0)-whole" }),
    .fails(
      as: .undecodable,
      ["gzip", "deflate", "br", "zstd"].flatMap { ["\($0)-cut-at-the-last-byte", "\($0)-cut"] }
        + ["gzip-cut-before-crc"]))
}
