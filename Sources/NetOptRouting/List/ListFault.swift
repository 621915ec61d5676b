import NetOptCore

/// A rule that an IP list breaks, and where.
package struct ListFault: Hashable, Sendable, CustomStringConvertible {
  /// The place, as a JSON path (RFC 9535): `$.hosts["a.example"].endpoints[3].ip`.
  package let path: String
  /// The rule, and what to do.
  package let message: String

  /// Makes a fault. What the message quotes from the list is made fit for a terminal.
  init(_ path: JSONPath, _ message: String) {
    self.path = path.description
    self.message = message.printable(500)
  }

  /// Path and rule on one line.
  package var description: String { "\(path): \(message)" }
}

/// Collects faults: all are counted, the first ones are kept.
struct FaultReport {
  /// The most faults that are kept. A list that breaks more rules is not read to its end by anybody.
  static let limit = 100

  private(set) var kept: [ListFault] = []
  private(set) var count = 0

  /// Notes a fault. Path and message are only made when it is kept, so that a list full of faults costs little.
  mutating func add(_ path: @autoclosure () -> JSONPath, _ message: @autoclosure () -> String) {
    count += 1
    if count <= Self.limit { kept.append(ListFault(path(), message())) }
  }

  /// Counts faults beyond those that were added.
  mutating func count(further faults: Int) { count += faults }

  /// The faults that were kept, and one that says how many were not.
  var faults: [ListFault] {
    count > Self.limit ? kept + [ListFault(JSONPath(), "and \(count - Self.limit) more faults")] : kept
  }
}
