package import NetOptCore

/// What one request gave.
package struct Sample: Sendable {
  /// What became of it.
  package enum Outcome: Hashable, Sendable {
    /// It was answered, with this status, and the body was read to its end.
    case answered(status: Int)
    /// It was not.
    case failed(SampleFailure)
  }

  /// What became of it.
  package var outcome: Outcome
  /// What its phases took; of no meaning for a failure.
  package var timings: Timings
  /// Whether its connection had been used before.
  package var reused: Bool
  /// The version of HTTP.
  package var version: HTTPVersion?
  /// How the connection was secured.
  package var tls: TLSReport?
  /// What the kernel measured of the connection, when the transport asked it.
  package var socket: SocketReport?
  /// How long after its moment the request was sent; zero in a closed loop, where it has none.
  package var lag = Duration.zero
  /// How long a request took that failed.
  package var failedAfter = Duration.zero

  /// Makes a sample.
  package init(
    _ outcome: Outcome, timings: Timings = Timings(), reused: Bool = false, version: HTTPVersion? = nil,
    tls: TLSReport? = nil
  ) {
    self.outcome = outcome
    self.timings = timings
    self.reused = reused
    self.version = version
    self.tls = tls
  }

  /// From sending the request until its end.
  package var service: Duration {
    if case .failed = outcome { failedAfter } else { timings.total }
  }

  /// How it is counted.
  package var kind: SampleKind {
    switch outcome {
    case .answered(let status): Sample.isFine(status) ? .ok : .httpError
    case .failed(let failure): failure.kind
    }
  }

  /// Whether an answer with this status is one: success, or a redirect, which a run does not follow.
  package static func isFine(_ status: Int) -> Bool { (200..<400).contains(status) }
}

/// How a sample is counted. The raw values are the keys of `counts`.
package enum SampleKind: String, CaseIterable, Hashable, Sendable {
  /// Answered with 2xx or 3xx.
  case ok
  /// Another status, or an answer that breaks the rules of HTTP.
  case httpError = "http_error"
  /// A time limit passed.
  case timeout
  /// The connection could not be opened, or was lost.
  case connect
  /// The TLS handshake failed.
  case tls
  /// The name was not found.
  case dns

  /// The kind's name in a sentence.
  package var label: String { self == .httpError ? "http error" : rawValue }
}

/// Why a request was not answered.
package struct SampleFailure: Hashable, Sendable {
  /// How it is counted.
  package let kind: SampleKind
  /// A stable name.
  package let code: String
  /// A short reason for people.
  package let reason: String

  /// Makes a failure.
  package init(_ kind: SampleKind, code: String, reason: String) {
    self.kind = kind
    self.code = code
    self.reason = reason
  }
}
