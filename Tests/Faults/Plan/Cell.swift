package import NetOptCore

/// One cell of the fault matrix (docs/reliability.md): a fault, and the requests that meet it.
package struct Cell: Sendable, CustomStringConvertible {
  package let fault: Fault
  package let traffic: Traffic
  /// The number of requests under way at once.
  package let concurrency: Int
  package let version: HTTPVersion

  package var description: String {
    "\(fault.name), \(traffic.rawValue), \(concurrency) at once, HTTP/\(version)"
  }

  /// The values of `concurrency` in the matrix.
  package static let concurrencies = [1, 50]
  package static let versions = [HTTPVersion.http1_1, .http2]

  /// All cells of the given faults.
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

  /// Selects `count` cells of faults without a known violation. Each fault gets one cell before any fault
  /// gets a second. A sample of 20 or more cells contains every kind of request, concurrency and version.
  package static func sample(_ count: Int, of faults: [Fault] = Fault.all) -> [Cell] {
    let columns = faults.filter { $0.knownViolation == nil }.map { all(of: [$0]) }
    var cells: [Cell] = []
    for round in 0... {
      for (index, column) in columns.enumerated() {
        guard cells.count < count else { return cells }
        guard round < column.count else { continue }
        // A column has the cells of one fault: 20, or 10 if the fault exists only in HTTP/2. Because 7 is
        // coprime to both, neighbouring cells differ in all dimensions, and rounds do not repeat a cell.
        cells.append(column[(index * 7 + round * 7 + index / column.count) % column.count])
      }
      if columns.allSatisfy({ round + 1 >= $0.count }) { return cells }
    }
    return cells
  }
}
