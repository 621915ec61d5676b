package import NetOptCore

/// The result of one request.
package struct Sample: Sendable {
  /// The outcome of a request.
  package enum Outcome: Hashable, Sendable {
    /// The server answered with this status, and the client read the whole body.
    case answered(status: Int)
    /// The request failed.
    case failed(SampleFailure)
  }

  /// The outcome of the request.
  package var outcome: Outcome
  /// The duration of each phase; meaningless for a failed request.
  package var timings: Timings
  /// Whether an earlier request had used the connection.
  package var reused: Bool
  /// The HTTP version.
  package var version: HTTPVersion?
  /// The TLS properties of the connection.
  package var tls: TLSReport?
  /// The kernel's measurements of the connection, when the transport asked for them.
  package var socket: SocketReport?
  /// The delay between the scheduled moment and the sending of the request. Zero in a closed loop, which has
  /// no schedule.
  package var lag = Duration.zero
  /// The duration of a failed request.
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

  /// The time from sending the request to its end.
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

  /// Whether a response with this status counts as successful: 2xx, or a 3xx redirect, which a run does not
  /// follow.
  package static func isSuccess(_ status: Int) -> Bool { (200..<400).contains(status) }
}

/// The kind of a sample in reports. The raw values are the keys of `counts`.
package enum SampleKind: String, CaseIterable, Hashable, Sendable {
  /// The response had a 2xx or 3xx status.
  case ok
  /// Another status, or an error that no other kind covers, such as a response that violates HTTP.
  case httpError = "http_error"
  /// A time limit expired.
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
  /// A stable code for programs.
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
