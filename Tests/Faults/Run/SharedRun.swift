import FoundationEssentials
import NetOptTestSupport
import TestTools

/// Runs cells in several processes at once, each in a network of its own and with its share of the cells.
package struct SharedRun {
  private let processes: [ChildProcess]

  /// The places of the cells of one share: every `count`-th cell, so that no share has all the slow ones.
  package static func places(ofShare share: Int, of count: Int, cells: Int) -> [Int] {
    Array(stride(from: share, to: cells, by: count))
  }

  /// Starts the processes.
  ///
  /// - Parameters:
  ///   - count: how many.
  ///   - arguments: this process's own, which say what the cells are; a process is told of its share by `--share` behind them.
  /// - Throws: `TestSupportError` when one cannot be started.
  package init(count: Int, arguments: [String]) throws {
    let directory = try TemporaryDirectory.make("shares")
    let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    processes = try (0..<count).map { share in
      let own = "\(directory)/\(share)"
      try FileManager.default.createDirectory(atPath: own, withIntermediateDirectories: false)
      return try ChildProcess(program, arguments + ["--share", "\(share)/\(count)"], in: own)
    }
  }

  /// Waits until all processes have ended.
  ///
  /// - Parameters:
  ///   - cells: how many cells they share.
  ///   - done: is told of each result, as it comes, with the place of its cell.
  /// - Throws: `TestSupportError` when a process could not run all of its cells, and what `done` throws.
  package func results(cells: Int, done: (CellResult, Int) throws -> Void) async throws {
    let places = processes.indices.map { Self.places(ofShare: $0, of: processes.count, cells: cells) }
    var told = processes.map { _ in 0 }
    var running = Set(processes.indices)
    while !running.isEmpty {
      // Files and children tell nobody that there is more. A cell takes seconds.
      try await Task.sleep(for: .milliseconds(200))
      for share in running.sorted() {
        // Asked before the output is read, which is whole then.
        let hasEnded = processes[share].exitStatus() != nil
        let results = CellResult.read(TextFile.read(processes[share].output))
        // A row's violations come behind it: the last result may not be whole yet.
        for result in results[told[share]..<max(told[share], results.count - (hasEnded ? 0 : 1))] {
          guard told[share] < places[share].count else { break }
          try done(result, places[share][told[share]])
          told[share] += 1
        }
        guard hasEnded else { continue }
        running.remove(share)
        guard told[share] == places[share].count else {
          throw TestSupportError("share \(share) ended early: \(TextFile.read(processes[share].output))")
        }
      }
    }
  }
}
