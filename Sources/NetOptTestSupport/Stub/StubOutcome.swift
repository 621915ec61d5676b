public import NetOptCore
import Synchronization

/// The behaviour of an endpoint of a `StubTransport`: what happens to connections, and how the endpoint
/// responds to requests.
public struct StubOutcome: Sendable {
  /// What happens to a connection. `tls` and `certificate` matter only over `https`; over `http`, the
  /// connection then becomes ready.
  enum Connection: Sendable {
    /// The connection becomes ready.
    case ready
    /// TCP does not connect. With `connectTimeout`, the attempt lasts until its limit; with another kind, it
    /// fails after `connectTime`.
    case tcp(LegFailure.Kind)
    /// TCP connects. With `tlsTimeout`, the TLS handshake lasts until the limit; with another kind, it fails
    /// after `tlsTime`.
    case tls(LegFailure.Kind)
    /// TCP connects, and the check of the certificate fails after `tlsTime`. Requests without verification
    /// ignore this failure.
    case certificate(LegFailure.Kind)
  }

  /// What happens to connections to the endpoint.
  var connection = Connection.ready
  /// Decides the outcome of a request from the request and its body.
  var answer: @Sendable (NetOptRequest, [UInt8]) -> StubAnswer = { _, _ in .response(StubResponse()) }
  /// The duration of the TCP handshake.
  var connectTime = Duration.zero
  /// The duration of the TLS handshake.
  var tlsTime = Duration.zero
  /// The time from the arrival of the request to the response or reset.
  var answerTime = Duration.zero

  /// Connections are ready at once, and every request gets this response.
  public static func respond(
    _ status: Int = 200, fields: HeaderFields = [:], body: [UInt8] = []
  ) -> StubOutcome {
    answer { _, _ in .response(StubResponse(status, fields: fields, body: body)) }
  }

  /// Connections are ready at once, and every request gets a response with this text in UTF-8.
  public static func respond(_ status: Int = 200, fields: HeaderFields = [:], text: String) -> StubOutcome {
    respond(status, fields: fields, body: Array(text.utf8))
  }

  /// Connections are ready at once, and every request gets a response with this value as JSON, with the media
  /// type `application/json` unless `fields` has one.
  ///
  /// - Throws: `invalidRequest` if the value cannot be encoded.
  public static func respond(
    _ status: Int = 200, fields: HeaderFields = [:], json value: some Encodable
  ) throws(NetOptError) -> StubOutcome {
    let response = try StubResponse(status, fields: fields, json: value)
    return answer { _, _ in .response(response) }
  }

  /// Connections are ready at once, and the closure decides the outcome of each request from the request and
  /// its body.
  public static func answer(
    _ answer: @escaping @Sendable (NetOptRequest, [UInt8]) -> StubAnswer
  ) -> StubOutcome {
    StubOutcome(answer: answer)
  }

  /// Connections are ready at once. The first request gets the first answer, and so on; all further requests
  /// get the last one. All copies of the outcome count together.
  ///
  /// - Parameter answers: the answers, at least one.
  public static func sequence(_ answers: [StubAnswer]) -> StubOutcome {
    precondition(!answers.isEmpty, "a sequence needs an answer")
    let next = Atomic(0)
    return answer { _, _ in
      answers[min(next.wrappingAdd(1, ordering: .relaxed).oldValue, answers.count - 1)]
    }
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

  /// Returns this behaviour with other durations.
  ///
  /// - Parameters:
  ///   - connect: the duration of the TCP handshake.
  ///   - tls: the duration of the TLS handshake.
  ///   - answer: the time from the arrival of the request to the response.
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
