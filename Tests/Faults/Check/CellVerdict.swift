/// The result of a cell: its figures and its violations.
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
      /// A request of netopt failed although curl completed one.
      case failed
      /// A request that must not be repeated was processed twice.
      case doubled
      /// A failure does not name its cause.
      case cause
      /// A call outlived its deadline.
      case late
      /// A response belongs to another request or to none.
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
  /// The number of failed requests that must not be repeated, of which bytes were written, and which no
  /// server refused.
  package var unrepeatable = 0
  /// The number of failures of responses that had begun and did not arrive completely.
  package var broken = 0
  package var doubled = 0
  /// The time from the start of the fault to the start of the first request after which no request went to
  /// the faulty server; `nil` when requests kept going there.
  package var failoverTime: Duration?
  /// The time from the end of the fault until the formerly faulty server answered again; `nil` when it did
  /// not answer.
  package var recoveryTime: Duration?
  package var violations: [Violation] = []

  package init() {}
}
