import NetOptCore

/// Counts the responses and failures of a listed endpoint, since it came into the list. Changes of the
/// network do not reset the counts. They only inform: no plan depends on them.
package struct EndpointCounts: Hashable, Sendable {
  /// The number of responses with other statuses than 502, 503 and 504.
  package private(set) var responses = 0
  /// The sum of the waits of these responses in nanoseconds, each from the last byte of the request to the first
  /// byte of the response.
  package private(set) var waits: Int64 = 0
  /// The number of failures for each name. A name is a kind of failure (`name`),
  /// `incomplete-response`, or a status: 502, 503 or 504.
  package private(set) var failures: [String: Int] = [:]

  package init() {}

  /// Counts a response.
  ///
  /// - Parameter wait: its wait in nanoseconds.
  mutating func answered(after wait: Int64) {
    responses += 1
    waits = waits.addingClamped(max(0, wait))
  }

  /// Counts a failure, unless it is of a kind that the metrics do not count at an endpoint.
  mutating func failed(_ kind: LegFailure.Kind) {
    if let name = Self.name(kind) { failures[name, default: 0] += 1 }
  }

  /// Counts a response with the status 502, 503 or 504.
  mutating func failed(with status: Int) { failures[String(status), default: 0] += 1 }

  /// Counts a request that got no complete response and whose leg has no failure: the server reset the stream
  /// or broke the rules of HTTP, or the connection was lost and the request may not be repeated.
  mutating func gotIncompleteResponse() { failures["incomplete-response", default: 0] += 1 }

  mutating func add(_ other: EndpointCounts) {
    responses += other.responses
    waits = waits.addingClamped(other.waits)
    failures.merge(other.failures, uniquingKeysWith: +)
  }

  /// The name of a kind of failure in the metrics; `nil` for kinds that the metrics do not count at an endpoint.
  private static func name(_ kind: LegFailure.Kind) -> String? {
    switch kind {
    case .refused: "refused"
    case .connectTimeout: "connect-timeout"
    case .tlsTimeout: "tls-timeout"
    case .reset: "reset"
    case .tls: "tls-failed"
    case .certificateName: "certificate-name"
    case .certificateUntrusted: "certificate-untrusted"
    case .certificateExpired: "certificate-expired"
    case .certificatePin: "certificate-pin"
    case .unreachable: "unreachable"
    case .silent: "silent"
    case .busy: "busy"
    case .unhealthy: "unhealthy"
    case .authorities, .resolve, .nameNotFound, .proxy, .proxyRefused, .other: nil
    }
  }
}
