import NetOptCore

/// Bytes after an HTTP/1.1 response (RFC 9112, section 9.2). The client must accept the response itself, and
/// must not take these bytes for the next response.
enum LeftoverCases {
  static let all: [HostileCase] = .together(
    atOnce, late, behindEmpty, records, ownRecord, expected)

  /// The bytes come together with the response.
  private static let atOnce: [HostileCase] = .answers([
    "extra-answer-at-once", "extra-answer-behind-chunks", "extra-answer-behind-connection-close",
    "extra-byte-at-once", "extra-line-end-at-once", "extra-continue-at-once", "half-an-extra-answer-at-once",
  ])

  /// The bytes, or a part of them, come while the connection is idle. Some scenarios end the connection then.
  private static let late: [HostileCase] = .answers([
    "extra-answer-in-pieces", "extra-answer-late", "extra-byte-late", "extra-line-end-late",
    "extra-continue-late", "extra-head-late", "extra-garbage-late", "request-timeout-late",
    "request-timeout-late-and-open", "end-late",
  ]) { $0.isLate = true }

  /// The bytes come after a response with an empty body.
  private static let behindEmpty: [HostileCase] = .together(
    .answers(with: ExpectedAnswer(body: .empty), ["extra-answer-behind-an-empty-one"]),
    .answers(with: ExpectedAnswer(body: .empty), ["extra-answer-in-pieces-behind-an-empty-one"]) {
      $0.isLate = true
    })

  /// The bytes come together with the response, but in a TLS record of their own.
  private static let ownRecord: [HostileCase] = .answers(
    ["tls12-extra-answer-in-its-own-record", "tls13-extra-answer-in-its-own-record"]
  ) { $0.access = .tls }

  /// The request expects "100 Continue" before it sends its body. The final response comes instead.
  private static let expected: [HostileCase] = .together(
    .answers(["answer-in-the-place-of-continue"]) {
      $0.method = .post
      $0.headers = ["Expect": "100-continue"]
    },
    // After a 417, libcurl repeats the request once without "Expect". With the same easy handle it does not
    // do so a second time.
    .either(
      with: ExpectedAnswer(status: 417), or: [.unsupported], ["answer-417-in-the-place-of-continue"]
    ) {
      $0.method = .post
      $0.headers = ["Expect": "100-continue"]
    })

  /// The bytes are whole TLS records, parts of records, or no records at all. They come while the connection
  /// is idle, or partly then and partly after the next request.
  private static let records: [HostileCase] = .answers(
    [1, 4, 5, 6, 30].map { "tls-record-split-at-\($0)" } + [
      "tls-record-split-at-the-last-byte",
      "tls12-extra-answer-late", "tls13-extra-answer-late", "tls12-extra-answer-in-two-records-late",
      "tls13-extra-answer-in-two-records-late", "tls12-close-notify-late", "tls13-close-notify-late",
      "tls-half-a-record-late", "tls-head-of-a-record-late", "tls-false-record-late", "tls-clear-text-late",
      "tls-clear-alert-late", "tls-rest-of-a-record-later",
    ]
  ) {
    $0.isLate = true
    $0.access = .tls
  }
}
