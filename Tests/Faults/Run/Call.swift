package import NetOptCore

/// The result of one request.
package struct Call: Sendable {
  /// What the client received.
  package enum Outcome: Sendable, Equatable {
    /// The right response. `by` is the name of the server, if known.
    case answered(by: String?)
    /// A wrong response that the client took as right.
    case wrong(String)
    case failed(Failure)
  }

  /// Why the request failed.
  package struct Failure: Sendable, Equatable {
    package var code: String
    package var message: String
    /// Whether the head of a response had arrived.
    package var hadHead = false
    /// Whether bytes of the request may have been written.
    package var mayBeWritten = false

    package init(code: String, message: String, hadHead: Bool = false, mayBeWritten: Bool = false) {
      self.code = code
      self.message = message
      self.hadHead = hadHead
      self.mayBeWritten = mayBeWritten
    }
  }

  package let id: String
  package let began: MonotonicInstant
  package let ended: MonotonicInstant
  /// The duration of the request, which may be shorter than the time from `began` to `ended`.
  package let time: Duration
  package let outcome: Outcome
  /// How much later than its deadline the call may end because of this machine.
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
