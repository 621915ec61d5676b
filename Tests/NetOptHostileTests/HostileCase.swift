import NetOptCore
import Testing

/// One misbehaviour of the server, and what is right for a client to make of it.
struct HostileCase: Sendable, CustomTestStringConvertible {
  /// What a client may make of an answer. No enumeration: its tag would stand in pointers, behind which the search for leaks finds nothing.
  struct Verdict: Sendable {
    /// What it takes for an answer has to be this one; `nil` when nothing is.
    let answer: ExpectedAnswer?
    /// The codes of errors that are right; without any, it is an answer.
    let codes: Set<NetOptError.Code>

    /// It is an answer, this one.
    static func answers(_ answer: ExpectedAnswer) -> Self { Self(answer: answer, codes: []) }
    /// It is an error, with one of these codes.
    static func fails(_ codes: Set<NetOptError.Code>) -> Self { Self(answer: nil, codes: codes) }
    /// The RFCs leave it to the client.
    static func either(_ answer: ExpectedAnswer, _ codes: Set<NetOptError.Code>) -> Self {
      Self(answer: answer, codes: codes)
    }
  }

  /// How the server is asked.
  enum Access: Sendable {
    /// With and without TLS: the misbehaviour is one of HTTP/1.1.
    case any
    /// With TLS.
    case tls
  }

  /// The scenario of the server.
  var name: String
  /// What is right.
  let verdict: Verdict
  /// How the server is asked.
  var access = Access.any
  /// Whether it is one of TCP, which a proxy that passes bytes on does not pass on.
  var isOfTCP = false
  /// The method of the request that is answered badly.
  var method = NetOptRequest.Method.get
  /// Its fields.
  var headers: HeaderFields = [:]
  /// Whether the request has a body that does not end.
  var isUploading = false
  /// Whether only the first connection of a host misbehaves, at its begin.
  var isOfFirstConnection = false
  /// Whether part of it is sent while the connection is idle, when the test says so.
  var isLate = false
  /// Whether the answer may be in the cache when it is taken for one.
  var mayBeStored = true
  /// Whether the server says that it did not process the request, so that a POST may be sent again.
  var isUnprocessed = false
  /// Whether the connection is of no use to further requests, which does not show: it never stops sending. Those may fail or reach
  /// their deadline.
  var mayStall = false
  /// The deadline of the request. Only where it may be reached is it waited for; elsewhere it is for a busy machine.
  var timeout: Duration
  /// Whether the server sends as much as it can, so that memory has to be watched.
  var isFlood = false

  var testDescription: String { name }

  init(name: String, verdict: Verdict) {
    self.name = name
    self.verdict = verdict
    timeout = verdict.codes.contains(.timeout) ? .seconds(1) : .seconds(10)
  }
}

/// The answer that a client may take for one.
struct ExpectedAnswer: Sendable {
  /// The body, from the number of the question.
  enum Body: Sendable {
    /// The usual body.
    case usual
    /// The usual body, with something behind it.
    case usualAnd(String)
    /// The usual body without its last bytes.
    case usualWithout(Int)
    /// The usual body, filled up with spaces.
    case padded(to: Int)
    /// None.
    case empty
  }

  var status = 200
  var body = Body.usual
  /// Values of fields, with each run of spaces as one. A field may also be left out.
  var fields: [String: String] = [:]
  /// Fields that must not be there.
  var absent: [String] = []

  static let usual = ExpectedAnswer()

  /// The bytes of the body.
  func bytes(for question: Int) -> [UInt8] {
    let usual = "answer \(question)"
    return switch body {
    case .usual: Array(usual.utf8)
    case .usualAnd(let rest): Array((usual + rest).utf8)
    case .usualWithout(let count): Array(usual.utf8.dropLast(count))
    case .padded(let count):
      Array(usual.utf8) + Array(repeating: 0x20, count: max(count - usual.utf8.count, 0))
    case .empty: []
    }
  }
}

extension Set<NetOptError.Code> {
  /// The answer breaks rules, or is cut.
  static let broken: Self = [.receiveFailed, .protocolViolation]
  /// The same, where nothing of an answer may have come.
  static let lost: Self = broken.union([.sendFailed])
  /// The body is not what its coding says.
  static let undecodable: Self = broken.union([.decodeFailed])
  /// The answer breaks rules, or its head has no end.
  static let oversized: Self = broken.union([.headTooLarge])
  /// The same of HTTP/2, where the connection may be lost with it.
  static let lostOrOversized: Self = lost.union(oversized)
  /// Nothing tells the server from a slow one.
  static let slow: Self = [.timeout]
  /// One of both: there is no rule that all of it breaks.
  static let brokenOrSlow: Self = broken.union(slow)
  static let lostOrSlow: Self = lost.union(slow)
  static let lostSlowOrOversized: Self = lostOrOversized.union(slow)
  /// A body without end: the client may take part of it, or wait behind another one.
  static let endless: Self = lost.union([.bodyTooLarge, .timeout])
  /// The handshake failed.
  static let handshake: Self = [.tlsFailed, .connectFailed]
  /// The same, where the client may take the handshake for done.
  static let handshakeOrLost: Self = handshake.union(lost)
  /// A handshake that does not end.
  static let handshakeOrSlow: Self = handshake.union(lostOrSlow)
}

extension [HostileCase] {
  /// The cases of several groups.
  static func together(_ groups: Self...) -> Self { Array(groups.joined()) }

  /// Cases that must fail.
  static func fails(
    as codes: Set<NetOptError.Code> = .broken, _ names: [String],
    _ change: (inout HostileCase) -> Void = { _ in }
  ) -> Self {
    make(names, .fails(codes), change)
  }

  /// Cases that must be answered.
  static func answers(
    with answer: ExpectedAnswer = .usual, _ names: [String], _ change: (inout HostileCase) -> Void = { _ in }
  ) -> Self {
    make(names, .answers(answer), change)
  }

  /// Cases that may be answered or fail.
  static func either(
    with answer: ExpectedAnswer = .usual, or codes: Set<NetOptError.Code> = .broken, _ names: [String],
    _ change: (inout HostileCase) -> Void = { _ in }
  ) -> Self {
    make(names, .either(answer, codes), change)
  }

  private static func make(
    _ names: [String], _ verdict: HostileCase.Verdict, _ change: (inout HostileCase) -> Void
  ) -> Self {
    names.map { name in
      var hostile = HostileCase(name: name, verdict: verdict)
      change(&hostile)
      return hostile
    }
  }
}
