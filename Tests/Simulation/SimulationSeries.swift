package import NetOptCore

/// Makes many runs, one for each seed, and collects the broken rules.
package enum SimulationSeries {
  /// Every seed that is divisible by this number also runs a fleet.
  package static let fleetEvery: UInt64 = 100
  /// How many lines of the trace are shown before the line of the first broken rule.
  private static let shown = 60

  /// Selects what a series runs for its seeds.
  package enum Selection: Hashable, Sendable {
    /// The run of each seed, and a fleet for every hundredth seed.
    case all
    /// The runs of this kind (`Scenario.Kind`), without fleets. The other seeds are left out.
    case kind(String)
    /// A fleet for each seed, and no runs.
    case fleets

    /// Makes a selection from its name; returns `nil` for an unknown name.
    package init?(named name: String) {
      if name == "fleet" {
        self = .fleets
      } else if Scenario.Kind(rawValue: name) != nil {
        self = .kind(name)
      } else {
        return nil
      }
    }

    /// The names of all selections except `all`.
    package static var names: [String] { Scenario.Kind.allCases.map(\.rawValue) + ["fleet"] }

    /// Whether the selection includes the run of a seed.
    fileprivate func runs(_ seed: UInt64) -> Bool {
      switch self {
      case .all: true
      case .kind(let name): Scenario(seed: seed).kind.rawValue == name
      case .fleets: false
      }
    }

    /// Whether the selection includes a fleet for a seed.
    fileprivate func hasFleet(_ seed: UInt64) -> Bool {
      self == .fleets || self == .all && seed % fleetEvery == 0
    }
  }

  /// The result of a series.
  package struct Result: Sendable {
    /// The number of requests in all runs.
    package var requests = 0
    /// The number of probes in all runs.
    package var probes = 0
    /// The seeds whose run or fleet broke a rule.
    package var broken: [UInt64] = []
    /// The first broken rule for each kind of run, and for `fleet`.
    package var examples: [String: String] = [:]
  }

  /// Runs the selected seeds.
  ///
  /// - Parameters:
  ///   - demand: an additional rule for plans; returns a description of the violation, or `nil`.
  ///   - stopsAtFirst: whether the series ends after the first seed that breaks a rule.
  ///   - report: receives a text for the first seed of each kind that breaks a rule. The text has the seed,
  ///     the rule and the trace. A fleet has no trace.
  package static func run(
    _ seeds: Range<UInt64>, _ selection: Selection = .all, demand: ((RoutePlan) -> String?)? = nil,
    stopsAtFirst: Bool = false, report: (String) -> Void = { _ in }
  ) -> Result {
    var result = Result()
    for seed in seeds {
      var faults: [String] = []
      var subject = "fleet"
      if selection.runs(seed) {
        let simulation = Simulation(seed: seed, demand: demand)
        simulation.run()
        result.requests += simulation.work.requests
        result.probes += simulation.work.probes
        faults = simulation.faults
        subject = simulation.subject
      }
      let isOfFleet = faults.isEmpty
      if selection.hasFleet(seed) { faults += Fleet(seed: seed).faults }
      guard let fault = faults.first else { continue }
      result.broken.append(seed)
      if result.examples[subject] == nil {
        result.examples[subject] = fault
        report("seed \(seed) (\(subject)): \(fault)" + (isOfFleet ? "" : "\n" + traceToFault(seed, demand)))
      }
      if stopsAtFirst { break }
    }
    return result
  }

  /// The end of a run's trace, up to its first broken rule, with times in seconds.
  private static func traceToFault(_ seed: UInt64, _ demand: ((RoutePlan) -> String?)?) -> String {
    let simulation = Simulation(seed: seed, demand: demand, isTraced: true)
    simulation.run()
    let trace = simulation.trace ?? []
    let end = trace.firstIndex { $0.contains("BROKEN") } ?? trace.count - 1
    return trace[max(0, end - shown)...max(end, 0)].joined(separator: "\n")
  }
}
