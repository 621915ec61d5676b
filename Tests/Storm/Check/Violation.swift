import NetOptLocking

/// Something that must not happen.
package struct Violation: Sendable, CustomStringConvertible {
  /// The rule that is broken.
  package enum Kind: String, Sendable, CaseIterable {
    /// The answer belongs to another request, or to none.
    case wrongAnswer = "wrong-answer"
    /// A field of the answer is missing, changed, or none of it.
    case wrongFields = "wrong-fields"
    case wrongStatus = "wrong-status"
    /// A byte of the body differs.
    case wrongBody = "wrong-body"
    /// A body that is not whole was taken for whole.
    case shortBody = "short-body"
    /// The version of HTTP is not the one that was asked for.
    case wrongVersion = "wrong-version"
    /// A server got a request that nobody sent.
    case wrongRequest = "wrong-request"
    /// A server took a body for whole that differs from what was sent.
    case wrongUpload = "wrong-upload"
    /// A request that must not be repeated reached servers more than once.
    case sentTwice = "sent-twice"
    /// A cached answer is too old, or one that no server sent.
    case wrongCached = "wrong-cached"
    /// A call ended more than 50 ms, and what the machine needs, after its deadline.
    case late
    /// A call went on for more than that after it was cancelled.
    case lateCancel = "late-cancel"
    /// A call, or a shutdown, did not end.
    case hang
    /// A call failed although nothing disturbed it.
    case unexpectedError = "unexpected-error"
    /// A call failed with an error that no disturbance explains.
    case oddError = "odd-error"
    /// A descriptor, thread, handle or client is left at the end.
    case leftover
    /// The memory of the process grows without end.
    case memory
  }

  package let kind: Kind
  package let text: String

  package init(_ kind: Kind, _ text: String) {
    self.kind = kind
    self.text = text
  }

  package var description: String { "\(kind.rawValue): \(text)" }
}

/// Collects violations. Safe from any thread.
package final class Violations: Sendable {
  /// How many of each kind are described.
  private static let mostExamples = 8

  private struct State {
    var counts: [Violation.Kind: Int] = [:]
    var examples: [Violation.Kind: [String]] = [:]
  }

  private let state = Locked(State())
  private let report: @Sendable (Violation) -> Void

  /// - Parameter report: called for the first violations of each kind.
  package init(report: @escaping @Sendable (Violation) -> Void = { _ in }) { self.report = report }

  package func add(_ kind: Violation.Kind, _ text: String) {
    let isShown = state.withLock { state in
      state.counts[kind, default: 0] += 1
      guard state.examples[kind, default: []].count < Self.mostExamples else { return false }
      state.examples[kind, default: []].append(text)
      return true
    }
    if isShown { report(Violation(kind, text)) }
  }

  package var counts: [Violation.Kind: Int] { state.withLock { $0.counts } }
  package var examples: [Violation] {
    let examples = state.withLock { $0.examples }
    return Violation.Kind.allCases.flatMap { kind in (examples[kind] ?? []).map { Violation(kind, $0) } }
  }

  /// The first ones of each kind, one in a line.
  package var text: String { examples.map(\.description).joined(separator: "\n") }
}
