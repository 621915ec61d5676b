import FoundationEssentials
import NetOptCore

/// Selects which cases run, and in which modes. By default all cases run, each in one mode. Environment
/// variables change this.
enum Selection {
  private static let environment = ProcessInfo.processInfo.environment

  /// Returns the selected runs: pairs of a case and a mode.
  ///
  /// - `HOSTILE_ONLY` selects the cases whose names contain one of its words. Commas separate the words.
  /// - `HOSTILE_SKIP` leaves out the cases whose names contain one of its words.
  /// - `HOSTILE_MODES=all` runs each case in all modes that fit it. The name of a mode runs each case in that
  ///   mode only, if the mode fits. By default, a case runs in one mode, which is drawn from its name and
  ///   `HOSTILE_SEED` (a number, by default 1).
  static func runs(of cases: [HostileCase]) -> [(HostileCase, HostileRun.Mode)] {
    let only = words("HOSTILE_ONLY")
    let skipped = words("HOSTILE_SKIP")
    let chosen = cases.filter { hostile in
      (only.isEmpty || only.contains { hostile.name.contains($0) })
        && !skipped.contains { hostile.name.contains($0) }
    }
    return chosen.flatMap { hostile in modes(of: hostile).map { (hostile, $0) } }
  }

  /// The modes in which a case runs.
  private static func modes(of hostile: HostileCase) -> [HostileRun.Mode] {
    let modes = HostileRun.Mode.allCases.filter { mode in
      switch mode {
      case .fresh, .cached: true
      case .tunneled: !hostile.isOfTCP
      // A case that needs a new connection cannot use a pooled one.
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

  /// The words of an environment variable. Commas separate them.
  private static func words(_ name: String) -> [String] {
    (environment[name] ?? "").split(separator: ",").map { String($0) }
  }
}
