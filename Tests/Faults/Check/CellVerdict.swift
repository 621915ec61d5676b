/// What a cell came to: its figures, and what is wrong.
package struct CellVerdict: Sendable {
  /// The figures of one client in a cell.
  package struct Figures: Sendable, Equatable {
    package var calls = 0
    package var failed = 0
    package var p50 = Duration.zero
    package var p99 = Duration.zero

    package init() {}

    init(_ calls: [Call]) {
      self.calls = calls.count
      failed = calls.count { !$0.isAnswered }
      let times = calls.map(\.time).sorted()
      guard let longest = times.last else { return }
      p50 = times[times.count / 2]
      p99 = times.count < 100 ? longest : times[times.count * 99 / 100]
    }
  }

  /// A rule that a cell broke.
  package struct Violation: Sendable, Equatable, CustomStringConvertible {
    package enum Kind: String, Sendable {
      /// netopt fails what curl completes.
      case failed
      /// A request that must not be repeated was processed twice.
      case doubled
      /// A failure does not name its cause.
      case cause
      /// A call outlives its deadline.
      case late
      /// An answer belongs to no question, or to another one.
      case wrongAnswer = "wrong-answer"
      /// The cell tested nothing.
      case idle
    }

    package let kind: Kind
    package let text: String

    package init(kind: Kind, text: String) {
      self.kind = kind
      self.text = text
    }

    package var description: String { "\(kind.rawValue): \(text)" }
  }

  package var netopt = Figures()
  package var curl = Figures()
  /// Failures of requests that must not be repeated, of which something was written and which nobody refused.
  package var unrepeatable = 0
  /// Failures of answers that had begun and did not come whole.
  package var broken = 0
  package var doubled = 0
  /// When the first request began from which on nobody went to the faulty server, after the beginning of the fault; `nil` when somebody
  /// always did.
  package var leave: Duration?
  /// When the server that had the fault gave an answer again, after the end of the fault; `nil` when it gave none.
  package var back: Duration?
  package var violations: [Violation] = []

  package init() {}
}
