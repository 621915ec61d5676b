/// The directory for state that programs keep from run to run (XDG Base Directory Specification).
enum StateDirectory {
  /// The directory for netopt's state: `$XDG_STATE_HOME/netopt`, by default `~/.local/state/netopt`; `nil`
  /// when neither `XDG_STATE_HOME` nor `HOME` is set. The specification says to ignore a path that is not
  /// absolute.
  static func path(_ environment: [String: String]) -> String? {
    if let state = absolute(environment["XDG_STATE_HOME"]) { return "\(state)/netopt" }
    return absolute(environment["HOME"]).map { "\($0)/.local/state/netopt" }
  }

  private static func absolute(_ path: String?) -> String? { path.flatMap { $0.hasPrefix("/") ? $0 : nil } }
}
