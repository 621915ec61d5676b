import FoundationEssentials

/// Which cases run: all, unless the environment names some. A case that crashes the process hides those behind it.
enum Selection {
  private static let environment = ProcessInfo.processInfo.environment

  /// The cases whose name contains one of the words in `HOSTILE_ONLY` and none of those in `HOSTILE_SKIP`; words are
  /// separated by commas.
  static func chosen(_ cases: [HostileCase]) -> [HostileCase] {
    let only = words("HOSTILE_ONLY")
    let skipped = words("HOSTILE_SKIP")
    return cases.filter { hostile in
      (only.isEmpty || only.contains { hostile.name.contains($0) })
        && !skipped.contains { hostile.name.contains($0) }
    }
  }

  private static func words(_ name: String) -> [String] {
    (environment[name] ?? "").split(separator: ",").map { String($0) }
  }
}
