import NetOptBench
import NetOptCore

extension CommandContext {
  /// Reads a saved run from a file, or from standard input if the name is "-".
  ///
  /// - Throws: `unreadableFile` if the file cannot be read, is too large, or is not a saved run. In the last
  ///   case, the message names the path of the invalid JSON value and the rule that the value breaks.
  ///   `cancelled` if the task is cancelled.
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
