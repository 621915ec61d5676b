public import NetOptCore

/// How an endpoint of a `StubTransport` behaves: what becomes of connections to it, and of requests that get there.
public struct StubOutcome: Sendable {
  /// What becomes of a connection.
  enum Connection: Sendable {
    case ready
    /// TCP fails after the time to connect, or never answers.
    case tcp(LegFailure.Kind)
    /// TCP is connected; TLS fails after its time, or never ends.
    case tls(LegFailure.Kind)
    case certificate(LegFailure.Kind)
  }

  var connection = Connection.ready
  var answer: @Sendable (NetOptRequest, [UInt8]) -> StubAnswer = { _, _ in .response(StubResponse()) }
  var connectTime = Duration.zero
  var tlsTime = Duration.zero
  var answerTime = Duration.zero

  /// Connections are ready at once, and each request gets this response.
  public static func respond(
    _ status: Int = 200, fields: HeaderFields = [:], body: [UInt8] = []
  ) -> StubOutcome {
    answer { _, _ in .response(StubResponse(status, fields: fields, body: body)) }
  }

  /// Connections are ready at once, and the closure says what becomes of each request; it gets the body as well.
  public static func answer(
    _ answer: @escaping @Sendable (NetOptRequest, [UInt8]) -> StubAnswer
  ) -> StubOutcome {
    StubOutcome(answer: answer)
  }

  /// Connections are refused at once.
  public static let refuse = StubOutcome(connection: .tcp(.refused))
  /// This machine has no way to the endpoint, which is known at once.
  public static let unreachable = StubOutcome(connection: .tcp(.unreachable))
  /// Attempts to connect get no answer.
  public static let silent = StubOutcome(connection: .tcp(.connectTimeout))
  /// TCP is connected at once; the TLS handshake gets no answer.
  public static let silentTLS = StubOutcome(connection: .tls(.tlsTimeout))
  /// TCP is connected at once; the TLS handshake fails.
  public static let brokenTLS = StubOutcome(connection: .tls(.tls))
  /// TCP is connected at once, and reset in the TLS handshake.
  public static let reset = StubOutcome(connection: .tls(.reset))

  /// The certificate is for these names, whatever is asked for. Without verification requests are answered with 200.
  public static func certificate(names: [String]) -> StubOutcome {
    StubOutcome(connection: .certificate(.certificateName(presented: names)))
  }

  /// The certificate is not signed by a trusted authority.
  public static let untrusted = StubOutcome(connection: .certificate(.certificateUntrusted))
  /// The certificate has expired.
  public static let expired = StubOutcome(connection: .certificate(.certificateExpired))
  /// A request arrives, and the connection is reset before an answer begins.
  public static let resetAfterSend = answer { _, _ in .reset }
  /// A request arrives and gets no answer.
  public static let noAnswer = answer { _, _ in .silence }

  /// The same behaviour with times: of the TCP handshake, the TLS handshake, and from the request to the answer.
  public func taking(
    connect: Duration = .zero, tls: Duration = .zero, answer: Duration = .zero
  ) -> StubOutcome {
    var outcome = self
    outcome.connectTime = connect
    outcome.tlsTime = tls
    outcome.answerTime = answer
    return outcome
  }
}
