import NetOptCore

/// TLS handshakes that are incomplete, damaged or false, odd TLS records, and bytes that are no TLS records
/// (RFC 8446, RFC 5246).
enum RecordCases {
  static let all: [HostileCase] = [HostileCase].together(
    cleartext, cuts, damage, tickets, control, sealed, records, order
  )
  .map { hostile in
    var hostile = hostile
    hostile.access = .tls
    return hostile
  }

  /// Bytes that the server sends instead of its first flight of the handshake. A flight is what one side
  /// sends before it waits for the other.
  private static let cleartext: [HostileCase] = .together(
    .fails(
      as: .handshake,
      [
        "handshake-end-at-once", "handshake-reset-at-once", "handshake-is-http",
        "handshake-is-http-and-open", "handshake-is-ssh", "handshake-is-zeros", "handshake-failure-alert",
        "handshake-internal-error-alert", "handshake-no-application-protocol-alert",
        "handshake-close-notify", "handshake-odd-alert", "handshake-alert-cut", "handshake-warnings-only",
        "handshake-record-over-length", "handshake-record-empty", "handshake-record-of-ssl-2",
        "handshake-record-of-odd-type", "handshake-data-first", "handshake-change-cipher-spec-first",
        "handshake-hello-request", "handshake-finished-first", "handshake-hello-comes-back",
        "handshake-hello-with-suite-not-offered",
      ]
    ) { $0.isOfFirstConnection = true },
    .fails(
      as: .handshake,
      ["handshake-message-of-16-megabytes", "handshake-certificate-without-end"]
    ) {
      $0.isOfFirstConnection = true
      $0.isFlood = true
    },
    .fails(as: .handshakeOrSlow, ["handshake-hello-requests-without-end"]) {
      $0.isOfFirstConnection = true
      $0.isFlood = true
      $0.timeout = .milliseconds(500)
    },
    .fails(as: .slow, ["handshake-silence"]) {
      $0.isOfFirstConnection = true
      $0.timeout = .milliseconds(300)
    })

  /// The server ends the connection or falls silent within the handshake.
  private static let cuts: [HostileCase] = .together(
    .fails(
      as: .handshakeOrLost,
      [12, 13].flatMap { version in
        [
          "cut-in-the-first-record", "cut-behind-the-hello", "cut-behind-two-records",
          "cut-behind-three-records", "cut-before-the-last-byte", "reset-behind-the-hello",
        ].map { "tls\(version)-\($0)" }
      } + ["tls12-cut-before-finished", "tls12-cut-in-finished", "tls12-reset-before-finished"]
    ) { $0.isOfFirstConnection = true },
    .fails(as: .slow, ["tls12-silence-behind-the-hello", "tls13-silence-behind-the-hello"]) {
      $0.isOfFirstConnection = true
      $0.timeout = .milliseconds(300)
    })

  /// The server changes a part of its handshake, or adds to it.
  private static let damage: [HostileCase] = .fails(
    as: .handshake,
    [
      "tls13-random-changed", "tls13-last-byte-changed", "tls13-a-byte-of-the-certificate-changed",
      "tls12-random-changed", "tls12-a-byte-of-the-certificate-changed", "tls12-finished-changed",
      "tls13-hello-twice", "tls13-alert-in-the-first-flight",
    ]
  ) { $0.isOfFirstConnection = true }

  /// Session tickets, and data that the server sends with the end of the handshake, before it can have read a
  /// request.
  private static let tickets: [HostileCase] = .together(
    .answers([
      "tls13-tickets-late", "tls13-tickets-in-pieces-of-a-byte", "tls13-no-tickets",
    ]) { $0.isOfFirstConnection = true },
    .answers(["tls13-three-thousand-tickets"]) {
      $0.isOfFirstConnection = true
      $0.isFlood = true
    },
    .either(or: .handshakeOrLost, ["tls12-answer-behind-finished"]) { $0.isOfFirstConnection = true },
    .answers(["tls13-tickets-behind-finished"]) { $0.isOfFirstConnection = true },
    .fails(
      as: .handshakeOrLost,
      [
        "tls13-answer-behind-finished", "tls13-tickets-and-answer-behind-finished",
        "tls13-begin-of-an-answer-behind-finished", "tls13-record-divided-behind-finished",
      ]
    ) { $0.isOfFirstConnection = true })

  /// A renegotiation (RFC 5246, section 7.4.1.1) or new keys (RFC 8446, section 4.6.3). The connection goes
  /// on after it.
  private static let control: [HostileCase] = .together(
    .answers(with: ofFirstConnection, ["tls12-answer-in-a-renegotiation"]) {
      $0.isOfFirstConnection = true
      $0.isLate = true
    },
    control("tls12-renegotiation"), control("tls13-key-update"), control("tls13-key-update-both"),
    .answers(
      with: ofFirstConnection,
      ["tls12-renegotiation-20-times", "tls13-key-update-200-times", "tls13-key-update-both-200-times"]
    ) { $0.isOfFirstConnection = true })

  /// Padded records, and endless records without data. A client may end a connection with endless records. It
  /// may also wait until its deadline, because such a connection looks like a slow one.
  private static let sealed: [HostileCase] = .together(
    .answers(with: ofFirstConnection, ["tls13-padded-records"]) { $0.isOfFirstConnection = true },
    .fails(as: .lostOrSlow, floods.map { "tls13-\($0)-without-end" }) {
      $0.isOfFirstConnection = true
      $0.isFlood = true
      $0.timeout = .milliseconds(500)
    },
    .answers(with: ofFirstConnection, floods.map { "tls13-\($0)-without-end-behind" }) {
      $0.isOfFirstConnection = true
      $0.isFlood = true
      $0.mayStall = true
    })

  /// The kinds of records that arrive without end.
  private static let floods = [
    "tickets", "packed-tickets", "key-updates", "key-updates-both", "empty-records",
  ]

  /// The cases of one kind of renegotiation or key update: before the head, within the body, and while the
  /// connection is idle.
  private static func control(_ kind: String) -> [HostileCase] {
    .together(
      .answers(with: ofFirstConnection, ["\(kind)-before-the-head", "\(kind)-in-the-body"]) {
        $0.isOfFirstConnection = true
      },
      .answers(with: ofFirstConnection, ["\(kind)-late"]) {
        $0.isOfFirstConnection = true
        $0.isLate = true
      })
  }

  /// The right response over the first connection to the host. A client must not need another connection.
  private static let ofFirstConnection = ExpectedAnswer(fields: ["X-Connection": "1"])

  /// Odd records, and bytes that are no records, before the response or within its body.
  private static let records: [HostileCase] = .fails(
    as: .lost,
    ["tls12-within", "tls13-within", "tls13-before"].flatMap { position in
      [
        "record-over-length", "record-of-noise", "record-too-short", "record-empty", "record-of-odd-type",
        "record-of-odd-version", "clear-text", "clear-alert", "clear-close-notify", "clear-handshake",
        "change-cipher-spec", "fatal-alert",
      ].map { "\(position)-\($0)" }
    })

  /// Records of a response that are exchanged, repeated, missing, changed or divided.
  private static let order: [HostileCase] = .together(
    .fails(
      as: .lost,
      [
        "records-in-a-wrong-order", "record-twice", "record-missing", "record-damaged", "record-extended",
      ]),
    .answers(["records-in-pieces-of-a-byte", "records-of-a-byte"]),
    .answers(
      with: ExpectedAnswer(body: .padded(to: 800)), ["tls-answer-in-400-records"]))
}
