import FoundationEssentials
import NetOptTestSupport
import TestTools

/// Runs cells in several concurrent processes. Each process has its own network namespace and its share of
/// the cells.
package struct SharedRun {
  /// The processes, each at the index of its share.
  private let processes: [ChildProcess]

  /// The indices of the cells of one share, which one process runs: every `count`-th cell from `share` on, so
  /// that no share gets all slow cells.
  ///
  /// - Parameters:
  ///   - share: the number of the share, from 0.
  ///   - count: the number of shares.
  ///   - cells: the number of cells of all shares.
  package static func indices(ofShare share: Int, of count: Int, cells: Int) -> [Int] {
    Array(stride(from: share, to: cells, by: count))
  }

  /// Starts the processes.
  ///
  /// - Parameters:
  ///   - count: the number of processes.
  ///   - arguments: the arguments of this process, which select the cells. `--share` after them tells each
  ///     process its share.
  /// - Throws: `TestSupportError` when a process cannot be started.
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
  ///   - cells: the total number of cells.
  ///   - done: called with each result as it arrives, and the index of its cell.
  /// - Throws: `TestSupportError` when a process could not run all of its cells, and the errors of `done`.
  package func results(cells: Int, done: (CellResult, Int) throws -> Void) async throws {
    let indices = processes.indices.map { Self.indices(ofShare: $0, of: processes.count, cells: cells) }
    var reported = processes.map { _ in 0 }
    var running = Set(processes.indices)
    while !running.isEmpty {
      // Nothing signals new output or the end of a process, so this polls. A cell takes seconds.
      try await Task.sleep(for: .milliseconds(200))
      for share in running.sorted() {
        // The exit status is read before the output: after the end of the process the output is complete.
        let hasEnded = processes[share].exitStatus() != nil
        let results = CellResult.read(TextFile.read(processes[share].output))
        // The violations follow their row, so the last result may be incomplete.
        for result in results[reported[share]..<max(reported[share], results.count - (hasEnded ? 0 : 1))] {
          guard reported[share] < indices[share].count else { break }
          try done(result, indices[share][reported[share]])
          reported[share] += 1
        }
        guard hasEnded else { continue }
        running.remove(share)
        guard reported[share] == indices[share].count else {
          throw TestSupportError("share \(share) ended early: \(TextFile.read(processes[share].output))")
        }
      }
    }
  }
}
