package import NetOptCore

/// How a call ended after one of its legs had won the race. The planner learns from the outcome about the
/// endpoint of the winning leg. It learns about all legs from the `RouteReport`.
package enum CallOutcome: Hashable, Sendable {
  /// The service responded with a status other than 502, 503 and 504. `wait` is the time from the last byte
  /// of the request to the first byte of the response.
  case answered(wait: Duration)
  /// The service responded with 502, 503 or 504: the servers behind the endpoint do not work at the moment.
  /// `retryAfter` is the time in the `Retry-After` field; `nil` when the response has no such field with a
  /// number of seconds.
  case unavailable(status: Int, retryAfter: Duration?)
  /// The exchange failed while the request was being sent or later. For example, the connection failed, only
  /// the stream was reset, or the response violated the rules of HTTP. When the connection failed, the
  /// winning leg of the report usually has a failure.
  case broke
  /// No response began before the deadline of the call. `HostRoutes.adjustedOutcome` decides whether the wait
  /// was long enough to count.
  case silent
  /// The outcome says nothing about the endpoint, for example because the caller ended the call.
  case unknown

  /// The outcome of a call that ended with a response.
  package init(_ response: NetOptResponse) {
    let status = response.status
    if status == 502 || status == 503 || status == 504 {
      // A date in `Retry-After` is ignored, because this machine's clock may be wrong. The circuit breaker
      // opens anyway when the failures continue.
      let delay = response.head.first("Retry-After").flatMap(RetryAfter.seconds)
      self = .unavailable(status: status, retryAfter: delay)
    } else {
      self = .answered(wait: response.timings.wait)
    }
  }

  /// The outcome of a call that ended with an error.
  package init(_ error: NetOptError) {
    // An error of the program, such as that of its body's stream, says nothing about the endpoint.
    guard error.cause == nil else {
      self = .unknown
      return
    }
    switch error.code {
    case .sendFailed, .receiveFailed, .protocolViolation: self = .broke
    case .timeout where error.phase == .receive: self = .silent
    default: self = .unknown
    }
  }
}
