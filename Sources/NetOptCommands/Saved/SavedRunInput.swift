import NetOptBench
import NetOptCore

extension CommandContext {
  /// Reads a saved run.
  ///
  /// - Throws: `unreadableFile`. For a file that is not a saved run, the error has the path in the file and
  ///   the rule.
  func savedRun(_ file: String) throws(NetOptError) -> SavedRun {
    let bytes = try read(file, upTo: SavedRun.maximumBytes, for: .list)
    guard bytes.count <= SavedRun.maximumBytes else {
      throw NetOptError(
        .unreadableFile, phase: .list,
        "\(file): is larger than \(SavedRun.maximumBytes >> 20) MiB, the maximum size of a saved run")
    }
    do throws(SavedRun.Fault) {
      return try SavedRun(bytes)
    } catch {
      throw NetOptError(.unreadableFile, phase: .list, "\(file): \(error)")
    }
  }
}
