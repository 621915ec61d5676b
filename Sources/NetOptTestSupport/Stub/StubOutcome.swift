public import NetOptCore

/// The behaviour of an endpoint of a `StubTransport`: the outcome of connections to the endpoint, and the
/// responses to requests.
public struct StubOutcome: Sendable {
  /// The outcome of a connection.
  enum Connection: Sendable {
    case ready
    /// TCP fails after the connect time, or never connects.
    case tcp(LegFailure.Kind)
    /// TCP connects. TLS fails after its time, or the handshake never ends.
    case tls(LegFailure.Kind)
    case certificate(LegFailure.Kind)
  }

  var connection = Connection.ready
  var answer: @Sendable (NetOptRequest, [UInt8]) -> StubAnswer = { _, _ in .response(StubResponse()) }
  var connectTime = Duration.zero
  var tlsTime = Duration.zero
  var answerTime = Duration.zero

  /// Connections are ready at once, and every request gets this response.
  public static func respond(
    _ status: Int = 200, fields: HeaderFields = [:], body: [UInt8] = []
  ) -> StubOutcome {
    answer { _, _ in .response(StubResponse(status, fields: fields, body: body)) }
  }

  /// Connections are ready at once, and the closure decides the outcome of each request from the request and
  /// its body.
  public static func answer(
    _ answer: @escaping @Sendable (NetOptRequest, [UInt8]) -> StubAnswer
  ) -> StubOutcome {
    StubOutcome(answer: answer)
  }

  /// The endpoint refuses connections at once.
  public static let refuse = StubOutcome(connection: .tcp(.refused))
  /// This machine has no route to the endpoint. Connections fail at once.
  public static let unreachable = StubOutcome(connection: .tcp(.unreachable))
  /// The endpoint does not respond to connection attempts.
  public static let silent = StubOutcome(connection: .tcp(.connectTimeout))
  /// TCP connects at once. The TLS handshake gets no response.
  public static let silentTLS = StubOutcome(connection: .tls(.tlsTimeout))
  /// TCP connects at once. The TLS handshake fails.
  public static let brokenTLS = StubOutcome(connection: .tls(.tls))
  /// TCP connects at once. The endpoint resets the connection in the TLS handshake.
  public static let reset = StubOutcome(connection: .tls(.reset))

  /// The certificate is for these names, regardless of the host of the request. Requests without verification
  /// get a response with status 200.
  public static func certificate(names: [String]) -> StubOutcome {
    StubOutcome(connection: .certificate(.certificateName(presented: names)))
  }

  /// No trusted authority has signed the certificate.
  public static let untrusted = StubOutcome(connection: .certificate(.certificateUntrusted))
  /// The certificate has expired.
  public static let expired = StubOutcome(connection: .certificate(.certificateExpired))
  /// The request arrives, and the endpoint resets the connection before a response begins.
  public static let resetAfterSend = answer { _, _ in .reset }
  /// The request arrives and gets no response.
  public static let noAnswer = answer { _, _ in .silence }

  /// Returns the same behaviour with durations: for the TCP handshake, for the TLS handshake, and from the
  /// request to the response.
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
