package import NetOptCore

/// One cell of the matrix.
package struct Cell: Sendable, CustomStringConvertible {
  package let fault: Fault
  package let traffic: Traffic
  /// How many requests are under way at once.
  package let concurrency: Int
  package let version: HTTPVersion

  package var description: String {
    "\(fault.name), \(traffic.rawValue), \(concurrency) at once, HTTP/\(version)"
  }

  package static let concurrencies = [1, 50]
  package static let versions = [HTTPVersion.http1_1, .http2]

  /// All cells of some faults.
  package static func all(of faults: [Fault] = Fault.all) -> [Cell] {
    faults.flatMap { fault in
      Traffic.allCases.flatMap { traffic in
        concurrencies.flatMap { concurrency in
          versions.filter { !fault.isHTTP2Only || $0 == .http2 }.map {
            Cell(fault: fault, traffic: traffic, concurrency: concurrency, version: $0)
          }
        }
      }
    }
  }

  /// A number of cells of faults without a known violation. Each fault has one before any has two, and 20 or more have every kind of
  /// request, concurrency and version among them.
  package static func sample(_ count: Int, of faults: [Fault] = Fault.all) -> [Cell] {
    let columns = faults.filter { $0.knownViolation == nil }.map { all(of: [$0]) }
    var cells: [Cell] = []
    for round in 0... {
      for (index, column) in columns.enumerated() {
        guard cells.count < count else { return cells }
        guard round < column.count else { continue }
        // 7 has no factor in common with 20 or 10, the sizes of columns: neighbours differ in all dimensions, rounds do not repeat.
        cells.append(column[(index * 7 + round * 7 + index / column.count) % column.count])
      }
      if columns.allSatisfy({ round + 1 >= $0.count }) { return cells }
    }
    return cells
  }
}
