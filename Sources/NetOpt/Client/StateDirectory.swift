/// Finds the directory in which netopt keeps its state between two runs (XDG Base Directory Specification).
enum StateDirectory {
  /// The directory for netopt's state: `$XDG_STATE_HOME/netopt`, by default `~/.local/state/netopt`. A
  /// variable whose path is not absolute is ignored, as the specification says.
  ///
  /// - Parameter environment: the environment variables of the process, by name.
  /// - Returns: `nil` when neither `XDG_STATE_HOME` nor `HOME` has an absolute path.
  static func path(_ environment: [String: String]) -> String? {
    if let state = absolute(environment["XDG_STATE_HOME"]) { return "\(state)/netopt" }
    return absolute(environment["HOME"]).map { "\($0)/.local/state/netopt" }
  }

  /// Returns the path if it is absolute; otherwise `nil`.
  private static func absolute(_ path: String?) -> String? { path.flatMap { $0.hasPrefix("/") ? $0 : nil } }
}
