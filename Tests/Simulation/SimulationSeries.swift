package import NetOptCore

/// Many runs, one for each seed.
package enum SimulationSeries {
  /// Each seed that this divides runs a fleet as well.
  package static let fleetEvery: UInt64 = 100
  /// The lines of what happened before a rule was broken that are shown.
  private static let shown = 60

  /// Which runs are made of the seeds.
  package enum Selection: Hashable, Sendable {
    /// All, with a fleet for every hundredth.
    case all
    /// Those of a kind.
    case kind(String)
    /// A fleet for each seed, and nothing else.
    case fleets

    /// A selection by its name, or `nil` when there is none with it.
    package init?(named name: String) {
      if name == "fleet" {
        self = .fleets
      } else if Scenario.Kind(rawValue: name) != nil {
        self = .kind(name)
      } else {
        return nil
      }
    }

    /// The names of all selections.
    package static var names: [String] { Scenario.Kind.allCases.map(\.rawValue) + ["fleet"] }

    fileprivate func runs(_ seed: UInt64) -> Bool {
      switch self {
      case .all: true
      case .kind(let name): Scenario(seed: seed).kind.rawValue == name
      case .fleets: false
      }
    }

    fileprivate func hasFleet(_ seed: UInt64) -> Bool {
      self == .fleets || self == .all && seed % fleetEvery == 0
    }
  }

  /// What the runs came to.
  package struct Result: Sendable {
    package var requests = 0
    package var probes = 0
    /// The seeds that broke a rule.
    package var broken: [UInt64] = []
    /// The first broken rules, one for each kind of run.
    package var examples: [String: String] = [:]
  }

  /// Runs the selected seeds.
  ///
  /// - Parameters:
  ///   - demand: a further rule for plans: says what is wrong with one.
  ///   - stopsAtFirst: whether a broken rule is the end.
  ///   - report: is given a text for the first seeds that break a rule: the seed, the rule, and what happened.
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
        report("seed \(seed) (\(subject)): \(fault)" + (isOfFleet ? "" : "\n" + story(seed, demand)))
      }
      if stopsAtFirst { break }
    }
    return result
  }

  /// What happened in a run until the first rule was broken: time in seconds, and what happened.
  private static func story(_ seed: UInt64, _ demand: ((RoutePlan) -> String?)?) -> String {
    let simulation = Simulation(seed: seed, demand: demand, isTraced: true)
    simulation.run()
    let trace = simulation.trace ?? []
    let end = trace.firstIndex { $0.contains("BROKEN") } ?? trace.count - 1
    return trace[max(0, end - shown)...max(end, 0)].joined(separator: "\n")
  }
}
