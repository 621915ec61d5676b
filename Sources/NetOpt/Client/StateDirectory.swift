/// The directory for state that programs keep from run to run (XDG Base Directory Specification).
enum StateDirectory {
  /// The directory for netopt's state: `$XDG_STATE_HOME/netopt`, by default `~/.local/state/netopt`. Ignores
  /// a variable whose path is not absolute, as the specification says. `nil` when neither `XDG_STATE_HOME`
  /// nor `HOME` has an absolute path.
  static func path(_ environment: [String: String]) -> String? {
    if let state = absolute(environment["XDG_STATE_HOME"]) { return "\(state)/netopt" }
    return absolute(environment["HOME"]).map { "\($0)/.local/state/netopt" }
  }

  /// The path if it is absolute, otherwise `nil`.
  private static func absolute(_ path: String?) -> String? { path.flatMap { $0.hasPrefix("/") ? $0 : nil } }
}
