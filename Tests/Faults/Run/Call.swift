package import NetOptCore

/// What became of one request.
package struct Call: Sendable {
  /// What came back.
  package enum Outcome: Sendable, Equatable {
    /// The right answer, by the server of that name where that is known.
    case answered(by: String?)
    /// Something else than the right answer, taken for one.
    case wrong(String)
    case failed(Failure)
  }

  /// Why it failed.
  package struct Failure: Sendable, Equatable {
    package var code: String
    package var message: String
    /// Whether an answer had begun.
    package var hadHead = false
    /// Whether something of the request may have been written.
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
  /// How long it took, which may be less than from its beginning to its end as they were seen from outside.
  package let time: Duration
  package let outcome: Outcome
  /// How much later than its deadline this machine lets a call end.
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
