/// The result of a cell: its figures and its violations.
package struct CellVerdict: Sendable {
  /// The figures of a set of calls of one client.
  package struct Figures: Sendable, Equatable {
    /// The number of calls.
    package var calls = 0
    /// The number of calls without the right response.
    package var failed = 0
    /// The median duration of all calls, failed ones included.
    package var p50 = Duration.zero
    /// The 99th percentile of the durations; the longest duration when there are fewer than 100 calls.
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

  /// One case in which netopt broke a rule of the matrix or of the soak.
  package struct Violation: Sendable, Equatable, CustomStringConvertible {
    package enum Kind: String, Sendable {
      /// A request of netopt failed without an `Excuse`. In a cell this counts only if curl completed a
      /// request during the fault.
      case failed
      /// Servers processed a request more than once although it must not be repeated.
      case doubled
      /// The message of a failure contains none of the words that name the fault (`Fault.causes`).
      case cause
      /// A call ended too long after its deadline. In a soak also: the p99 of `SoakReport.inFaults` is above
      /// its limit.
      case late
      /// The client accepted a response with a wrong status, id, HTTP version or body.
      case wrongAnswer = "wrong-answer"
      /// The run tested nothing, because no call met a fault.
      case idle
    }

    package let kind: Kind
    /// What happened, with the id of the call if the violation is about one call.
    package let text: String

    package init(kind: Kind, text: String) {
      self.kind = kind
      self.text = text
    }

    package var description: String { "\(kind.rawValue): \(text)" }
  }

  /// The figures of netopt's calls that the fault may have affected.
  package var netopt = Figures()
  /// The figures of curl's calls that the fault may have affected.
  package var curl = Figures()
  /// The number of netopt's failed calls with the excuse `Excuse.unrepeatable`.
  package var unrepeatable = 0
  /// The number of netopt's failed calls with the excuse `Excuse.broken`.
  package var broken = 0
  /// The number of netopt's requests that servers processed more than once, although the requests must not be
  /// repeated.
  package var doubled = 0
  /// How long netopt took to leave the faulty server (`CellJudge.failoverTime`). `nil` when netopt did not
  /// leave it, and when the fault has no victim (`Fault.hasVictim`).
  package var failoverTime: Duration?
  /// How long netopt took to come back: the time from the end of the fault until the formerly faulty server
  /// had answered a call again. `nil` when it answered none while the run waited for it, and when the fault
  /// has no victim.
  package var recoveryTime: Duration?
  package var violations: [Violation] = []

  package init() {}
}
