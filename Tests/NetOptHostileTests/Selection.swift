import FoundationEssentials
import NetOptCore

/// Selects the runs: all cases, each in one mode, unless environment variables say otherwise.
enum Selection {
  private static let environment = ProcessInfo.processInfo.environment

  /// Returns the runs of the cases whose names contain one of the words in `HOSTILE_ONLY` and none of those
  /// in `HOSTILE_SKIP`. Commas separate the words. The mode of a case follows from its name and the number
  /// `HOSTILE_SEED` (default: 1). `HOSTILE_MODES=all` runs each case in all modes; the name of a mode runs
  /// each case only in that mode.
  static func runs(of cases: [HostileCase]) -> [(HostileCase, HostileRun.Mode)] {
    let only = words("HOSTILE_ONLY")
    let skipped = words("HOSTILE_SKIP")
    let chosen = cases.filter { hostile in
      (only.isEmpty || only.contains { hostile.name.contains($0) })
        && !skipped.contains { hostile.name.contains($0) }
    }
    return chosen.flatMap { hostile in modes(of: hostile).map { (hostile, $0) } }
  }

  private static func modes(of hostile: HostileCase) -> [HostileRun.Mode] {
    let modes = HostileRun.Mode.allCases.filter { mode in
      switch mode {
      case .fresh, .cached: true
      case .tunneled: !hostile.isOfTCP
      // A scenario of the connection's beginning needs a new connection.
      case .pooled: !hostile.isOfFirstConnection
      case .proxied: hostile.access == .any
      }
    }
    switch environment["HOSTILE_MODES"] {
    case nil: break
    case "all": return modes
    case let wanted: return modes.filter { $0.rawValue == wanted }
    }
    let seed = environment["HOSTILE_SEED"].flatMap { UInt64($0) } ?? 1
    var random = SplitMix64(seed: hostile.name.utf8.reduce(seed) { $0 &* 31 &+ UInt64($1) })
    return [modes[Int(random.below(UInt64(modes.count)))]]
  }

  private static func words(_ name: String) -> [String] {
    (environment[name] ?? "").split(separator: ",").map { String($0) }
  }
}
