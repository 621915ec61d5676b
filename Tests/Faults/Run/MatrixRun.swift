import NetOptStorm
import NetOptTestSupport
import TestTools

/// Runs cells of the matrix, one after the other.
package enum MatrixRun {
  /// Whether this process may create network namespaces.
  package static var mayEnterNetwork: Bool { NetworkNamespace.isAvailable }

  /// Moves the process into a new network namespace, in which `wire.py` can create its device. Must be called
  /// before the process has a second thread.
  ///
  /// - Returns: whether the process has the namespace; this requires root.
  package static func enterNetwork() async -> Bool {
    guard (try? NetworkNamespace.enterNew()) != nil else { return false }
    do {
      let directory = try TemporaryDirectory.make("ip")
      try await ChildProcess.run("ip", ["link", "set", "lo", "up"], in: directory)
      return true
    } catch {
      return false
    }
  }

  /// Runs cells.
  ///
  /// - Parameters:
  ///   - isShort: whether to use `CellRun.Timing.short`: each fault lasts 300 ms, or longer until requests
  ///     that met it have ended, and the run does not check whether netopt returns to the faulty server.
  ///   - done: called after each cell with its verdict.
  package static func run(
    _ cells: [Cell], isShort: Bool, done: (Cell, CellVerdict) async throws -> Void
  ) async throws {
    // The servers behind a wire (`true`) and without a wire (`false`), started when a cell needs them.
    var sites: [Bool: Site] = [:]
    defer { for site in sites.values { site.stop() } }
    let lateness = try Lateness()
    for (number, cell) in cells.enumerated() {
      let isWired = cell.fault.needsOwnNetwork
      let site: Site
      if let there = sites[isWired] {
        site = there
      } else {
        site = try await Site(isWired: isWired)
        sites[isWired] = site
      }
      let run = CellRun(
        cell: cell, number: number, site: site, timing: isShort ? .short : .long, lateness: lateness)
      try await done(cell, try await run.verdict())
    }
    await lateness.stop()
  }
}
