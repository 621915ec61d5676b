package import NetOptRouting

/// Many runs, one for each seed.
package enum SimulationSeries {
  /// How many of the seeds have a fleet as well.
  package static let fleetEvery: UInt64 = 100
  /// The lines of what happened before a rule was broken that are shown.
  private static let shown = 60

  /// What the runs came to.
  package struct Result: Sendable {
    package var requests = 0
    package var probes = 0
    /// The seeds that broke a rule.
    package var broken: [UInt64] = []
    /// The first broken rules, one for each kind of run.
    package var examples: [String: String] = [:]
  }

  /// Runs all seeds.
  ///
  /// - Parameters:
  ///   - mutation: how the policy is made wrong.
  ///   - report: is given a text for the first seeds that break a rule: the seed, the rule, and what happened.
  package static func run(
    _ seeds: Range<UInt64>, mutation: PlannerMutation? = nil, report: (String) -> Void = { _ in }
  ) -> Result {
    var result = Result()
    for seed in seeds {
      let simulation = Simulation(seed: seed, mutation: mutation)
      simulation.run()
      result.requests += simulation.work.requests
      result.probes += simulation.work.probes
      var faults = simulation.faults
      if seed % fleetEvery == 0 { faults += Fleet(seed: seed, mutation: mutation).faults }
      guard let fault = faults.first else { continue }
      result.broken.append(seed)
      if result.examples[simulation.subject] == nil {
        result.examples[simulation.subject] = fault
        report("seed \(seed) (\(simulation.subject)): \(fault)\n" + story(seed, mutation))
      }
    }
    return result
  }

  /// What happened in a run until the first rule was broken: time in seconds, and what happened.
  package static func story(_ seed: UInt64, _ mutation: PlannerMutation? = nil) -> String {
    let simulation = Simulation(seed: seed, mutation: mutation, isTraced: true)
    simulation.run()
    let trace = simulation.trace ?? []
    let end = trace.firstIndex { $0.contains("BROKEN") } ?? trace.count - 1
    return trace[max(0, end - shown)...max(end, 0)].joined(separator: "\n")
  }

  /// The first seed that shows what a mutation gets wrong, and the rule that it breaks: in runs in which that matters
  /// most.
  package static func firstFault(
    of mutation: PlannerMutation, in seeds: Range<UInt64>
  ) -> (seed: UInt64, fault: String)? {
    let kind: Scenario.Kind? =
      switch mutation {
      case .noHysteresis: .calm
      case .noProbes, .noBlame: .deaths
      case .failureLooksFast: .listDead
      case .noFirstByte: .slowness
      case .noWaits: .stalls
      case .noNetwork: .outage
      case .noRest, .noHalfOpen: .unavailable
      case .longQuarantine, .steadyChecks, .unverifiedRelease: .certificates
      case .noSpread, .noLookUp, .endlessProbes: nil
      }
    for seed in seeds {
      if mutation == .noSpread {
        if let fault = Fleet(seed: seed, mutation: mutation).faults.first { return (seed, fault) }
        continue
      }
      guard kind == nil || Scenario(seed: seed).kind == kind else { continue }
      let simulation = Simulation(seed: seed, mutation: mutation)
      simulation.run()
      if let fault = simulation.faults.first { return (seed, fault) }
    }
    return nil
  }
}
