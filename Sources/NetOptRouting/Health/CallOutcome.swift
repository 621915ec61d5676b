package import NetOptCore

/// What became of a call after a leg had won its race: what routing learns from besides the legs.
package enum CallOutcome: Hashable, Sendable {
  /// The service answered, whatever it said.
  ///
  /// `wait` is the time from the request's last byte to the answer's first.
  case answered(wait: Duration)
  /// The service answered 502, 503 or 504: what is behind the endpoint does not work just now. `retryAfter` is how
  /// long it asked to be left alone, if it did.
  case unavailable(status: Int, retryAfter: Duration?)
  /// The exchange broke off after the request was sent: its connection failed, which the report of the leg then says, its
  /// stream alone was reset, or what came was no answer by the rules of HTTP.
  case broke
  /// No answer began within the call's time. Whether that was long enough to say something is weighed by who learns from it.
  case silent
  /// It says nothing about the endpoint: the caller ended the call.
  case unknown

  /// What a response says.
  package init(_ response: NetOptResponse) {
    let status = response.status
    if status == 502 || status == 503 || status == 504 {
      // A date is passed over: it would be compared with a clock that may be wrong, and the circuit opens by itself when it
      // goes on.
      let delay = response.head.first("Retry-After").flatMap(RetryAfter.seconds)
      self = .unavailable(status: status, retryAfter: delay)
    } else {
      self = .answered(wait: response.timings.wait)
    }
  }

  /// What the error says with which a call ended.
  package init(_ error: NetOptError) {
    switch error.code {
    case .sendFailed, .receiveFailed, .protocolViolation: self = .broke
    case .timeout where error.phase == .receive: self = .silent
    default: self = .unknown
    }
  }
}
