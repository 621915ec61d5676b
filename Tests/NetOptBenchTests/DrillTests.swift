import NetOptCore
import NetOptLocking
import Testing

@testable import NetOptBench

@Suite struct DrillTests {
  /// Whichever client of a trial goes first pays an additional cost. The drill must not take this cost for a
  /// cost of the dead address.
  @Test("the drill alternates which client goes first, so that the first client's cost cancels out")
  func alternation() async throws {
    // The lists of the clients, in the order in which the drill makes the clients.
    let asked = Locked<[[IPAddress]]>([])
    let drill = Drill(live: [Fixtures.first], now: { 0 }) { addresses, count in
      let number = asked.withLock { asked in
        asked.append(addresses)
        return asked.count
      }
      // The client that goes first in a trial takes 10 ms longer. The dead address costs 250 ms.
      let duration = (number % 2 == 1 ? 30 : 20) + (addresses.count > 1 ? 250 : 0)
      return (0..<count).map { index in
        Drill.Call(
          duration: .milliseconds(duration), isAffected: addresses.count > 1 && index == 0, isAnswered: true)
      }
    }
    let exclusion = Exclusion(code: "silent", reason: "connect: no answer in time")
    let result = try #require(await drill.result(of: Fixtures.second, exclusion))
    let order = asked.withLock { asked in asked.map(\.count) }
    // The client without the dead address has one address in its list, the other client has two.
    #expect(order.count == 2 * Drill.trials && order.prefix(4) == [1, 2, 2, 1])
    #expect(result.added.shift == 250_000)
    #expect(result.trials.allSatisfy { $0.affected == 1 && $0.baseline != nil })
  }
}
