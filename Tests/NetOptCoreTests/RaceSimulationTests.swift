import NetOptCore
import Testing

/// Thousands of races against legs that do as they please.
@Suite struct RaceSimulationTests {
  @Test(arguments: 1...8)
  func everyRaceKeepsTheRules(_ seed: UInt64) {
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
