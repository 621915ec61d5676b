import NetOptCore
import Testing

/// A case: a scenario in which the hostile server misbehaves in one way, the request to send to it, and the
/// results that a client may have.
struct HostileCase: Sendable, CustomTestStringConvertible {
  /// The results that a client may have. This is a struct and not an enum because of the leak checker: Swift
  /// would store the tag of an enum in unused bits of its pointers, and the leak checker would not follow
  /// these pointers.
  struct Verdict: Sendable {
    /// The response that the client may accept; `nil` when it must accept none.
    let answer: ExpectedAnswer?
    /// The error codes with which the call may fail; empty when it must not fail.
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
    /// With or without TLS: the server misbehaves at the level of HTTP/1.1.
    case any
    /// Only with TLS.
    case tls
  }

  /// The name of the scenario in `Tests/Hostile`. It begins the host name, which selects the scenario.
  var name: String
  /// The results that the client may have.
  let verdict: Verdict
  /// The transport of the request.
  var access = Access.any
  /// Whether the server misbehaves at the level of TCP. A proxy forwards only bytes, so the case cannot run
  /// through a tunnel.
  var isOfTCP = false
  /// The method of the request that gets the broken response.
  var method = NetOptRequest.Method.get
  /// The fields of the request that gets the broken response.
  var headers: HeaderFields = [:]
  /// Whether the request is a POST with a body that never ends.
  var isUploading = false
  /// Whether the server misbehaves only on the first connection to a host. A client that connects again then
  /// gets the right response.
  var isOfFirstConnection = false
  /// Whether the server holds back data until the test releases it. The connection is idle by then.
  var isLate = false
  /// Whether the cache may store the response if the client accepts it.
  var mayBeStored = true
  /// Whether the server says that it did not process the request. The client may then send even a POST again.
  var isUnprocessed = false
  /// Whether the connection may look healthy although it is useless for further requests: the server never
  /// stops sending, or allows no stream. Further requests may then fail or reach their deadline.
  var mayStall = false
  /// The time limit of the request. By default 1 s if the call may end with a timeout. Otherwise 10 s, so
  /// that the call does not reach it even on a busy machine.
  var timeout: Duration
  /// Whether the server sends very many bytes or makes the client decode very many. Such a case runs alone,
  /// and the test limits how much the memory of the process grows.
  var isFlood = false

  var testDescription: String { name }

  init(name: String, verdict: Verdict) {
    self.name = name
    self.verdict = verdict
    timeout = verdict.codes.contains(.timeout) ? .seconds(1) : .seconds(10)
  }
}

/// A response that a client may accept.
struct ExpectedAnswer: Sendable {
  /// The body. It depends on the number `n` of the request, which is in the URL.
  enum Body: Sendable {
    /// The usual body: "answer n".
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
  /// The value that each field must have, by name, if the response has the field. Before the comparison,
  /// spaces and tabs at the ends are removed, and each other run of them becomes one space.
  var fields: [String: String] = [:]
  /// The names of fields that the response must not have.
  var absent: [String] = []

  /// The usual response: status 200 with the usual body.
  static let usual = ExpectedAnswer()

  /// The bytes of the body in the response to the request with this number.
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
  /// The response breaks rules or is incomplete.
  static let broken: Self = [.receiveFailed, .protocolViolation]
  /// The response breaks rules or is incomplete, perhaps before its first byte. Then the client may report
  /// that sending failed.
  static let lost: Self = broken.union([.sendFailed])
  /// The body cannot be decoded, or the response breaks rules.
  static let undecodable: Self = broken.union([.decodeFailed])
  /// The response breaks rules, or its head or trailers are too large.
  static let oversized: Self = broken.union([.headTooLarge])
  /// As `oversized`, for HTTP/2: the client may also lose the connection before the response begins.
  static let lostOrOversized: Self = lost.union(oversized)
  /// The call reaches its deadline: the client cannot know whether the server is only slow.
  static let slow: Self = [.timeout]
  /// The response breaks rules, or the call reaches its deadline.
  static let brokenOrSlow: Self = broken.union(slow)
  /// As `lost`, or the call reaches its deadline.
  static let lostOrSlow: Self = lost.union(slow)
  /// As `lostOrOversized`, or the call reaches its deadline.
  static let lostSlowOrOversized: Self = lostOrOversized.union(slow)
  /// The body is endless. The test stops reading it at a limit (`bodyTooLarge`), or the call waits behind
  /// another endless body until its deadline.
  static let endless: Self = lost.union([.bodyTooLarge, .timeout])
  /// The TLS handshake fails.
  static let handshake: Self = [.tlsFailed, .connectFailed]
  /// The TLS handshake fails, or the client takes it for complete and the request then fails.
  static let handshakeOrLost: Self = handshake.union(lost)
  /// The TLS handshake does not end: as `handshakeOrLost`, or the call reaches its deadline.
  static let handshakeOrSlow: Self = handshake.union(lostOrSlow)
}

extension [HostileCase] {
  /// Joins groups of cases.
  static func together(_ groups: Self...) -> Self { Array(groups.joined()) }

  /// Makes cases in which the call must fail with one of these codes.
  ///
  /// - Parameters:
  ///   - names: the names of the scenarios, one for each case.
  ///   - change: changes the other properties of each case.
  static func fails(
    as codes: Set<NetOptError.Code> = .broken, _ names: [String],
    _ change: (inout HostileCase) -> Void = { _ in }
  ) -> Self {
    make(names, .fails(codes), change)
  }

  /// Makes cases in which the call must get this response. `names` and `change` are as in `fails`.
  static func answers(
    with answer: ExpectedAnswer = .usual, _ names: [String], _ change: (inout HostileCase) -> Void = { _ in }
  ) -> Self {
    make(names, .answers(answer), change)
  }

  /// Makes cases in which the call may either get this response or fail with one of these codes. By default,
  /// the response is the usual one: `.either(or: codes, names)` allows the usual response or an error.
  /// `names` and `change` are as in `fails`.
  static func either(
    with answer: ExpectedAnswer = .usual, or codes: Set<NetOptError.Code> = .broken, _ names: [String],
    _ change: (inout HostileCase) -> Void = { _ in }
  ) -> Self {
    make(names, .either(answer, codes), change)
  }

  /// Makes one case for each name, with this verdict. `change` changes the other properties of each case.
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
