package import NetOptCore

/// The result of one request.
package struct Sample: Sendable {
  /// The outcome of a request.
  package enum Outcome: Hashable, Sendable {
    /// The server answered with this status, which may be an error. The client read the whole body.
    case answered(status: Int)
    /// The client got no complete response.
    case failed(SampleFailure)
  }

  /// The outcome of the request.
  package var outcome: Outcome
  /// The durations of the phases. They have no meaning when the client got no complete response.
  package var timings: Timings
  /// Whether an earlier request had used the connection.
  package var reused: Bool
  /// The HTTP version of the response; `nil` without a response.
  package var version: HTTPVersion?
  /// The TLS properties of the connection; `nil` without TLS or without a response.
  package var tls: TLSReport?
  /// The kernel's measurements of the connection; `nil` when the transport did not ask for them.
  package var socket: SocketReport?
  /// The delay from the scheduled moment of the request to its start. Zero in a closed loop, which has no
  /// schedule.
  package var lag = Duration.zero
  /// The time from the start of the request to its failure; zero when there is a response.
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

  /// The time from the start of the request to the end of its response, or to its failure.
  package var service: Duration {
    if case .failed = outcome { failedAfter } else { timings.total }
  }

  /// The kind under which reports count the sample.
  package var kind: SampleKind {
    switch outcome {
    case .answered(let status): Sample.isSuccess(status) ? .ok : .httpError
    case .failed(let failure): failure.kind
    }
  }

  /// Whether a response with this status counts as success: 2xx, and 3xx, because a run does not follow
  /// redirects.
  package static func isSuccess(_ status: Int) -> Bool { (200..<400).contains(status) }
}

/// The kind under which reports count a sample. The raw values are the keys of `counts` in the JSON report.
package enum SampleKind: String, CaseIterable, Hashable, Sendable {
  /// The response had a 2xx or 3xx status.
  case ok
  /// The response had another status, or the request failed with an error that no other kind covers, such as
  /// a response that violates HTTP.
  case httpError = "http_error"
  /// The request did not end within a time limit.
  case timeout
  /// The connection could not be opened, or was lost.
  case connect
  /// The TLS handshake failed.
  case tls
  /// The name resolution failed.
  case dns

  /// The kind's name in the text and HTML reports.
  package var label: String { self == .httpError ? "http error" : rawValue }
}

/// The reason why a request failed.
package struct SampleFailure: Hashable, Sendable {
  /// The kind under which reports count the failure.
  package let kind: SampleKind
  /// A code that programs can rely on, such as `refused`.
  package let code: String
  /// The reason in a few words, for people.
  package let reason: String

  /// Makes a failure.
  package init(_ kind: SampleKind, code: String, reason: String) {
    self.kind = kind
    self.code = code
    self.reason = reason
  }
}
