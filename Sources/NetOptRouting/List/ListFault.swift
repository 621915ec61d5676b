import NetOptCore

/// A broken rule of an IP list, and its place.
package struct ListFault: Hashable, Sendable, CustomStringConvertible {
  /// The place, as a JSON path (RFC 9535): `$.hosts["a.example"].endpoints[3].ip`.
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

/// Collects faults: counts all, and keeps the first ones.
struct FaultReport {
  /// The maximum number of kept faults. Nobody reads more.
  static let limit = 100

  /// The first faults, at most `limit`.
  private(set) var kept: [ListFault] = []
  /// The number of all faults.
  private(set) var count = 0

  /// Adds a fault. Evaluates path and message only when the fault is kept, so that a list full of faults
  /// costs little.
  mutating func add(_ path: @autoclosure () -> JSONPath, _ message: @autoclosure () -> String) {
    count += 1
    if count <= Self.limit { kept.append(ListFault(path(), message())) }
  }

  /// Adds to the number of faults, without keeping the faults.
  mutating func count(further faults: Int) { count += faults }

  /// The kept faults. When there are more faults than `limit`, one more entry tells their number.
  var faults: [ListFault] {
    count > Self.limit ? kept + [ListFault(JSONPath(), "and \(count - Self.limit) more faults")] : kept
  }
}
