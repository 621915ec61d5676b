import NetOptLocking

/// A case in which a rule of the storm was broken.
package struct Violation: Sendable, CustomStringConvertible {
  /// The rule that was broken (docs/storm.md).
  package enum Kind: String, Sendable, CaseIterable {
    /// The response belongs to another request or to none.
    case wrongAnswer = "wrong-answer"
    /// A field of the response is missing, changed, or does not belong to it.
    case wrongFields = "wrong-fields"
    /// The status is not the one in the plan of the request.
    case wrongStatus = "wrong-status"
    /// A byte of the body differs.
    case wrongBody = "wrong-body"
    /// An incomplete body was taken as complete.
    case shortBody = "short-body"
    /// The HTTP version is not the requested one.
    case wrongVersion = "wrong-version"
    /// A server received a request that no client sent.
    case wrongRequest = "wrong-request"
    /// A server took a body for complete that differs from the body that the client sent.
    case wrongUpload = "wrong-upload"
    /// A request that must not be repeated reached servers more than once.
    case sentTwice = "sent-twice"
    /// A response from a cache is too old, must not be stored, or was sent by no server.
    case wrongCached = "wrong-cached"
    /// A call ended too late: more than 50 ms after its deadline, besides the allowance for the machine
    /// (`Lateness.allowance`) and the pauses of a slow reader.
    case late
    /// A call ended too late after its cancellation: more than 50 ms, besides these allowances.
    case lateCancel = "late-cancel"
    /// A call did not end within 15 s after its deadline, or a client did not shut down within 20 s.
    case hang
    /// A call failed although nothing disturbed it.
    case unexpectedError = "unexpected-error"
    /// A call failed with an error that no disturbance explains.
    case oddError = "odd-error"
    /// At the end, the process has more descriptors, threads of netopt or allocations of libcurl than before,
    /// or a client that was not released.
    case leftover
    /// The memory of the process grows without bound. No check reports this; `StormReport.memory` shows the
    /// memory.
    case memory
  }

  package let kind: Kind
  /// The violation in words.
  package let text: String

  package init(_ kind: Kind, _ text: String) {
    self.kind = kind
    self.text = text
  }

  package var description: String { "\(kind.rawValue): \(text)" }
}

/// Collects violations. Thread-safe.
package final class Violations: Sendable {
  /// The maximum number of violations of each kind that are kept with their text. The others are only
  /// counted.
  private static let mostExamples = 8

  /// The violations so far, by kind.
  private struct State {
    /// The number of all violations.
    var counts: [Violation.Kind: Int] = [:]
    /// The texts of the first violations.
    var examples: [Violation.Kind: [String]] = [:]
  }

  private let state = Locked(State())
  /// Called for the first violations of each kind.
  private let report: @Sendable (Violation) -> Void

  /// - Parameter report: called for the first violations of each kind.
  package init(report: @escaping @Sendable (Violation) -> Void = { _ in }) { self.report = report }

  /// Counts a violation. Keeps and reports it if it is among the first of its kind.
  package func add(_ kind: Violation.Kind, _ text: String) {
    let isShown = state.withLock { state in
      state.counts[kind, default: 0] += 1
      guard state.examples[kind, default: []].count < Self.mostExamples else { return false }
      state.examples[kind, default: []].append(text)
      return true
    }
    if isShown { report(Violation(kind, text)) }
  }

  /// The number of violations of each kind.
  package var counts: [Violation.Kind: Int] { state.withLock { $0.counts } }
  /// The first violations of each kind.
  package var examples: [Violation] {
    let examples = state.withLock { $0.examples }
    return Violation.Kind.allCases.flatMap { kind in (examples[kind] ?? []).map { Violation(kind, $0) } }
  }

  /// The first violations of each kind, one per line.
  package var text: String { examples.map(\.description).joined(separator: "\n") }
}
