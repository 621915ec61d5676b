import NetOptCore

/// A rule that an IP list breaks, and the place in the list.
package struct ListFault: Hashable, Sendable, CustomStringConvertible {
  /// The place in the list, as a JSON path (RFC 9535): `$.hosts["a.example"].endpoints[3].ip`.
  package let path: String
  /// The rule, and how to fix the fault.
  package let message: String

  /// Makes a fault. Text that the message quotes from the list is made printable for a terminal.
  init(_ path: JSONPath, _ message: String) {
    self.path = path.description
    self.message = message.printable(500)
  }

  /// Path and rule on one line.
  package var description: String { "\(path): \(message)" }
}

/// The faults of a list, or of another JSON document. Counts all faults and keeps the first ones.
package struct FaultReport {
  /// The maximum number of kept faults. No user reads more.
  package static let limit = 100

  /// The first faults, at most `limit`.
  private(set) var kept: [ListFault] = []
  /// The number of all faults, kept or not.
  private(set) var count = 0

  /// Makes a report without faults.
  package init() {}

  /// Adds a fault. Evaluates path and message only when the fault is kept, so that a list full of faults
  /// costs little.
  mutating func add(_ path: @autoclosure () -> JSONPath, _ message: @autoclosure () -> String) {
    count += 1
    if count <= Self.limit { kept.append(ListFault(path(), message())) }
  }

  /// Counts further faults without keeping them.
  mutating func count(further faults: Int) { count += faults }

  /// The kept faults. When there are more faults than `limit`, one more entry says how many were not kept.
  package var faults: [ListFault] {
    count > Self.limit ? kept + [ListFault(JSONPath(), "and \(count - Self.limit) more faults")] : kept
  }
}
