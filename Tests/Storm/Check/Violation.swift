import NetOptLocking

/// A broken rule.
package struct Violation: Sendable, CustomStringConvertible {
  /// The rule.
  package enum Kind: String, Sendable, CaseIterable {
    /// The response belongs to another request or to none.
    case wrongAnswer = "wrong-answer"
    /// A field of the response is missing, changed, or does not belong to it.
    case wrongFields = "wrong-fields"
    case wrongStatus = "wrong-status"
    /// A byte of the body differs.
    case wrongBody = "wrong-body"
    /// An incomplete body was taken as complete.
    case shortBody = "short-body"
    /// The HTTP version is not the requested one.
    case wrongVersion = "wrong-version"
    /// A server received a request that no client sent.
    case wrongRequest = "wrong-request"
    /// A server took as complete a body that differs from the sent one.
    case wrongUpload = "wrong-upload"
    /// A request that must not be repeated reached servers more than once.
    case sentTwice = "sent-twice"
    /// A cached response is too old, or no server sent it.
    case wrongCached = "wrong-cached"
    /// A call ended later than its deadline plus 50 ms and the allowance for the machine.
    case late
    /// A call went on longer than that after its cancellation.
    case lateCancel = "late-cancel"
    /// A call or a shutdown did not end.
    case hang
    /// A call failed although nothing disturbed it.
    case unexpectedError = "unexpected-error"
    /// A call failed with an error that no disturbance explains.
    case oddError = "odd-error"
    /// A descriptor, thread, handle or client remains at the end.
    case leftover
    /// The memory of the process grows without bound.
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

/// Collects violations. Thread-safe.
package final class Violations: Sendable {
  /// The maximum number of described violations of each kind.
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

  /// The first violations of each kind, one per line.
  package var text: String { examples.map(\.description).joined(separator: "\n") }
}
