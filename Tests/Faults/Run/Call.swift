package import NetOptCore

/// The result of one request.
package struct Call: Sendable {
  /// What the client received.
  package enum Outcome: Sendable, Equatable {
    /// The right response. From curl: a complete response with status 200, whose body is not checked. `by` is
    /// the name of the server; `nil` from curl.
    case answered(by: String?)
    /// A wrong response that the client took as right, with a description.
    case wrong(String)
    case failed(Failure)
  }

  /// Why the request failed.
  package struct Failure: Sendable, Equatable {
    /// The code of netopt's error, or curl's exit code; "-" when curl reported no result.
    package var code: String
    package var message: String
    /// Whether the head of the response had arrived. Known only for netopt.
    package var hadHead = false
    /// Whether bytes of the request may have been written. Known only for netopt, which reports the phase of
    /// the failure.
    package var mayBeWritten = false

    package init(code: String, message: String, hadHead: Bool = false, mayBeWritten: Bool = false) {
      self.code = code
      self.message = message
      self.hadHead = hadHead
      self.mayBeWritten = mayBeWritten
    }
  }

  /// The id of the request, which is in its path and in the bodies (`Content`). No other request of the run
  /// has this id.
  package let id: String
  /// When the request began. For curl: when the process with the request started.
  package let began: MonotonicInstant
  /// When the request ended. For curl: when the process with the request ended.
  package let ended: MonotonicInstant
  /// The duration of the request. For curl, it may be shorter than the time from `began` to `ended`.
  package let time: Duration
  package let outcome: Outcome
  /// How much later than its deadline the call may end because this machine was busy (`Lateness.allowance`);
  /// zero for curl.
  package var allowance: Duration

  package init(
    id: String, began: MonotonicInstant, ended: MonotonicInstant, time: Duration? = nil, outcome: Outcome,
    allowance: Duration = .zero
  ) {
    self.id = id
    self.began = began
    self.ended = ended
    self.time = time ?? ended - began
    self.outcome = outcome
    self.allowance = allowance
  }

  package var failure: Failure? { if case .failed(let failure) = outcome { failure } else { nil } }
  var isAnswered: Bool { if case .answered = outcome { true } else { false } }
}
