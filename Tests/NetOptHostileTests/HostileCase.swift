import NetOptCore
import Testing

/// One misbehaviour of the server, and the right reactions of a client.
struct HostileCase: Sendable, CustomTestStringConvertible {
  /// The right results for a client. A struct and not an enum: the tag of an enum would be stored in
  /// pointers, which the leak checker then does not follow.
  struct Verdict: Sendable {
    /// The only response that the client may accept; `nil` when it must accept none.
    let answer: ExpectedAnswer?
    /// The error codes that are right; empty when only a response is right.
    let codes: Set<NetOptError.Code>

    /// The call must get this response.
    static func answers(_ answer: ExpectedAnswer) -> Self { Self(answer: answer, codes: []) }
    /// The call must fail with one of these codes.
    static func fails(_ codes: Set<NetOptError.Code>) -> Self { Self(answer: nil, codes: codes) }
    /// The call may get this response or fail with one of these codes: the RFCs leave the choice to the
    /// client.
    static func either(_ answer: ExpectedAnswer, _ codes: Set<NetOptError.Code>) -> Self {
      Self(answer: answer, codes: codes)
    }
  }

  /// The transport of the request.
  enum Access: Sendable {
    /// With or without TLS: the misbehaviour is one of HTTP/1.1.
    case any
    /// With TLS.
    case tls
  }

  /// The name of the server's scenario.
  var name: String
  /// The right results.
  let verdict: Verdict
  /// The transport of the request.
  var access = Access.any
  /// Whether the misbehaviour is one of TCP, which a proxy that forwards bytes does not forward.
  var isOfTCP = false
  /// The method of the request that gets the broken response.
  var method = NetOptRequest.Method.get
  /// The fields of that request.
  var headers: HeaderFields = [:]
  /// Whether the request has an endless body.
  var isUploading = false
  /// Whether only the first connection of a host misbehaves, at its beginning.
  var isOfFirstConnection = false
  /// Whether the server sends part of the response while the connection is idle, when the test releases it.
  var isLate = false
  /// Whether the cache may store the response if the client accepts it.
  var mayBeStored = true
  /// Whether the server reports that it did not process the request, so that a POST may be sent again.
  var isUnprocessed = false
  /// Whether the connection is useless for further requests although it looks healthy: the server never stops
  /// sending. Further requests may fail or reach their deadline.
  var mayStall = false
  /// The deadline of the request. In cases that do not allow a timeout it only covers a busy machine.
  var timeout: Duration
  /// Whether the server sends as much as it can, so that the test must check the memory.
  var isFlood = false

  var testDescription: String { name }

  init(name: String, verdict: Verdict) {
    self.name = name
    self.verdict = verdict
    timeout = verdict.codes.contains(.timeout) ? .seconds(1) : .seconds(10)
  }
}

/// The response that a client may accept.
struct ExpectedAnswer: Sendable {
  /// The body, which depends on the number of the request.
  enum Body: Sendable {
    /// The usual body.
    case usual
    /// The usual body with a text appended.
    case usualAnd(String)
    /// The usual body without this many bytes at its end.
    case usualWithout(Int)
    /// The usual body, padded with spaces to this length.
    case padded(to: Int)
    /// No body.
    case empty
  }

  var status = 200
  var body = Body.usual
  /// Required values of fields, compared with each run of spaces as one space. A field may also be missing.
  var fields: [String: String] = [:]
  /// Fields that must be absent.
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
  /// The response breaks rules or is cut.
  static let broken: Self = [.receiveFailed, .protocolViolation]
  /// The same, when the client may have received no part of a response.
  static let lost: Self = broken.union([.sendFailed])
  /// The content coding does not match the body.
  static let undecodable: Self = broken.union([.decodeFailed])
  /// The response breaks rules, or its head is endless.
  static let oversized: Self = broken.union([.headTooLarge])
  /// The same for HTTP/2, where the connection may be lost too.
  static let lostOrOversized: Self = lost.union(oversized)
  /// The client cannot tell the server from a slow one.
  static let slow: Self = [.timeout]
  /// The response breaks rules or is slow.
  static let brokenOrSlow: Self = broken.union(slow)
  static let lostOrSlow: Self = lost.union(slow)
  static let lostSlowOrOversized: Self = lostOrOversized.union(slow)
  /// An endless body: the client may take part of it, or wait behind another body.
  static let endless: Self = lost.union([.bodyTooLarge, .timeout])
  /// The handshake failed.
  static let handshake: Self = [.tlsFailed, .connectFailed]
  /// The same, when the client may take the handshake as complete.
  static let handshakeOrLost: Self = handshake.union(lost)
  /// A handshake that does not end.
  static let handshakeOrSlow: Self = handshake.union(lostOrSlow)
}

extension [HostileCase] {
  /// The cases of several groups.
  static func together(_ groups: Self...) -> Self { Array(groups.joined()) }

  /// Cases in which the call must fail.
  static func fails(
    as codes: Set<NetOptError.Code> = .broken, _ names: [String],
    _ change: (inout HostileCase) -> Void = { _ in }
  ) -> Self {
    make(names, .fails(codes), change)
  }

  /// Cases in which the call must get a response.
  static func answers(
    with answer: ExpectedAnswer = .usual, _ names: [String], _ change: (inout HostileCase) -> Void = { _ in }
  ) -> Self {
    make(names, .answers(answer), change)
  }

  /// Cases in which the call may either get this response or fail with one of these codes. By default, the
  /// response is the usual one: `.either(or: codes, names)` allows the usual response or an error.
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
