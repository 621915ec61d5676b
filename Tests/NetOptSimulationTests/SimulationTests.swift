import NetOptCore
import Testing

@testable import NetOptSimulation

/// The routing policy in simulated networks.
@Suite struct SimulationTests {
  /// Runs a few seeds, because the tests are built without optimization. After the tests, `make test` runs
  /// `make simulate`, which is optimized and runs 5,000 seeds by default.
  @Test("no run of 20 seeds breaks a rule")
  func everyRuleHolds() {
    var reports: [String] = []
    let result = SimulationSeries.run(1..<21, report: { reports.append($0) })
    #expect(result.broken.isEmpty, "\(reports.joined(separator: "\n\n"))")
    #expect(result.requests > 1500)
  }

  @Test("a selection by kind runs only the seeds of that kind, and needs a known kind")
  func selection() throws {
    let calm = try #require(SimulationSeries.Selection(named: "calm"))
    let calmSeeds = (1..<41 as Range<UInt64>).filter { Scenario(seed: $0).kind == .calm }
    var asked: Set<UInt64> = []
    for seed in 1..<41 as Range<UInt64> {
      if SimulationSeries.run(seed..<(seed + 1), calm).requests > 0 { asked.insert(seed) }
    }
    #expect(!calmSeeds.isEmpty && asked == Set(calmSeeds))
    #expect(SimulationSeries.Selection(named: "none") == nil)
  }

  @Test("a fleet spreads over the endpoints, unless all clients draw the same numbers")
  func fleet() {
    #expect(Fleet(seed: 200).faults.isEmpty)
    #expect(!Fleet(seed: 200, drawsDiffer: false).faults.isEmpty)
  }

  @Test("two runs of the same seed have the same trace")
  func determinism() {
    for seed in 2...4 as ClosedRange<UInt64> {
      let traces = (0..<2).map { _ in
        let simulation = Simulation(seed: seed, isTraced: true)
        simulation.run()
        return simulation.trace ?? []
      }
      #expect(traces[0] == traces[1])
      #expect(traces[0].count > 100)
    }
  }

  @Test("a broken rule is reported with seed, rule and events of the run")
  func brokenRule() throws {
    var reports: [String] = []
    // Every plan has a DNS leg, so every plan breaks the additional rule (`demand`).
    let result = SimulationSeries.run(
      1..<3, demand: { $0.legs.contains { $0.target == .dns } ? "a plan has DNS" : nil }
    ) {
      reports.append($0)
    }
    let report = try #require(reports.first)
    #expect(!result.broken.isEmpty)
    #expect(report.hasPrefix("seed "))
    #expect(report.contains("BROKEN: a plan has DNS"))
    #expect(report.contains("client 1 probed "))
  }

  @Test("the first 20 seeds contain every kind of run")
  func kinds() {
    let kinds = Set((0..<20 as Range<UInt64>).map { Scenario(seed: $0).kind })
    #expect(kinds == Set(Scenario.Kind.allCases))
  }

  @Test("events come out by time, and at equal times in the order of insertion")
  func eventOrder() {
    var queue = EventQueue<Int>()
    var random = SplitMix64(seed: 7)
    let times = (0..<200).map { _ in random.number(in: 0...40) }
    for (number, time) in times.enumerated() { queue.add(number, at: Simulation.start + .seconds(time)) }
    var order: [Int] = []
    while let (_, number) = queue.next() { order.append(number) }
    #expect(order == times.indices.sorted { (times[$0], $0) < (times[$1], $1) })
  }
}
