import NetOptCore
import Testing

/// Thousands of simulated races (`Race`). The legs, which are connection attempts to the addresses of a plan,
/// behave at random.
@Suite struct RaceSimulationTests {
  @Test("random races follow the rules of the model, and every rule is at work", arguments: 1...8)
  func randomRaces(_ seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var occasions: [RaceSimulation.Occasion: Int] = [:]
    for _ in 0..<3000 {
      var simulation = RaceSimulation(&random)
      simulation.run()
      #expect(simulation.faults.isEmpty, "\(simulation.faults)")
      occasions.merge(simulation.occasions, uniquingKeysWith: +)
    }
    for occasion in RaceSimulation.Occasion.allCases {
      #expect(occasions[occasion, default: 0] > 10, "\(occasion): \(occasions[occasion, default: 0])")
    }
  }
}
