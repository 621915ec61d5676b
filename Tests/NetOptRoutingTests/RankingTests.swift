import NetOptCore
import Testing

@testable import NetOptRouting

@Suite struct RankingTests {
  /// An entry of a ranking. Without other arguments, the endpoint is far away (distance 2) and has the
  /// default weight.
  private func entry(
    _ index: Int, _ standing: Ranking.Standing, distance: Int = 2, weight: Int = 100
  ) -> Ranking.Entry {
    Ranking.Entry(index: index, standing: standing, distance: distance, weight: weight)
  }

  /// The standing of an endpoint that is known to work, with this score.
  private func known(_ milliseconds: Double) -> Ranking.Standing { .known(Int64(milliseconds * 1e6)) }

  /// The indices of the endpoints in the order in which a plan tries them. First comes the endpoint that
  /// `Ranking.front` chooses. The others follow in the order of the ranking.
  private func order(_ entries: [Ranking.Entry], leader: Int? = nil, draw: UInt64 = 0) -> [Int] {
    let ranking = Ranking(entries)
    var order = ranking.entries.map(\.index)
    if !order.isEmpty { order.insert(order.remove(at: ranking.front(leader: leader, draw: draw)), at: 0) }
    return order
  }

  @Test("endpoints with a known time rank first, then unknown endpoints, then penalised ones")
  func standings() {
    let entries = [
      entry(0, .penalised(1)), entry(1, .unknown), entry(2, known(900)), entry(3, .penalised(0)),
      entry(4, known(20)),
    ]
    #expect(order(entries) == [4, 2, 1, 3, 0])
  }

  @Test("unknown endpoints rank by distance, then weight, then list order")
  func unknownEndpoints() {
    let entries = [
      entry(0, .unknown), entry(1, .unknown, weight: 200), entry(2, .unknown, distance: 1),
      entry(3, .unknown, distance: 0, weight: 1), entry(4, .unknown, distance: 1), entry(5, .unknown),
    ]
    #expect(order(entries) == [3, 2, 4, 1, 0, 5])
    #expect(order(entries, leader: 5) == [3, 2, 4, 1, 0, 5])
  }

  @Test(
    "a leader is replaced for a gain above 5 ms and 15 %, and never when it is sticky",
    arguments: [
      // The times of the leader and of the other endpoint in ms, and whether the other one takes the lead.
      (20.0, 15.1, false), (20, 15, false), (20, 14.9, true), (100, 85.1, false), (100, 85, false),
      (100, 84.9, true), (5, 0, false), (6, 0.5, true),
    ])
  func leaderChangesOnlyForAClearGain(_ current: Double, _ other: Double, _ changes: Bool) {
    let entries = [entry(0, known(current)), entry(1, known(other))]
    #expect(order(entries, leader: 0).first == (changes ? 1 : 0))
    // `front` returns a position in the ranking, not an index. The leader, whose index is 0, has position 1
    // when the other endpoint is faster.
    #expect(Ranking(entries).front(leader: 0, draw: 0, isSticky: true) == (other < current ? 1 : 0))
  }

  @Test(
    "a leader without a known time or with a penalty loses its place",
    arguments: [Ranking.Standing.unknown, .penalised(1)])
  func leaderWithoutTime(_ standing: Ranking.Standing) {
    #expect(order([entry(0, standing), entry(1, known(500))], leader: 0) == [1, 0])
  }

  @Test("the fastest endpoint replaces a leader that is gone")
  func leaderThatIsGoneIsReplaced() {
    #expect(order([entry(1, known(50)), entry(2, known(10))], leader: 0) == [2, 1])
    #expect(order([], leader: 0) == [])
  }

  @Test("a draw by weight chooses among the endpoints within 10 % of the fastest")
  func spreadByWeight() {
    let entries = [
      entry(0, known(111)), entry(1, known(110), weight: 300), entry(2, known(100)), entry(3, .unknown),
    ]
    var counts = [0, 0, 0, 0]
    var random = SplitMix64(seed: 5)
    for _ in 0..<4000 { counts[order(entries, draw: random.next())[0]] += 1 }
    #expect(counts[0] == 0)
    #expect(counts[3] == 0)
    #expect((2850...3150).contains(counts[1]))
  }

  @Test("the other endpoints keep their order behind the leader")
  func orderBehindLeader() {
    let entries = [entry(0, known(30)), entry(1, known(10)), entry(2, known(20)), entry(3, known(12))]
    #expect(order(entries, leader: 3) == [3, 1, 2, 0])
  }

  @Test("the order of endpoints is total and does not depend on the order of insertion")
  func orderIsTotal() {
    var random = SplitMix64(seed: 9)
    for _ in 0..<200 {
      let entries = (0..<12).map { index in
        let standing: Ranking.Standing =
          switch Int.random(in: 0...2, using: &random) {
          case 0: .known(Int64.random(in: 0...3, using: &random))
          case 1: .unknown
          default: .penalised(Int64.random(in: 0...3, using: &random))
          }
        return entry(
          index, standing, distance: Int.random(in: 0...2, using: &random),
          weight: Int.random(in: 1...2, using: &random))
      }
      for a in entries {
        for b in entries {
          // Exactly one of less, equal, greater.
          #expect([a < b, a == b, b < a].count { $0 } == 1)
          for c in entries where a < b && b < c { #expect(a < c) }
        }
      }
      let shuffled = entries.shuffled(using: &random)
      let draw = random.next()
      let leader = Int.random(in: 0..<24, using: &random)
      #expect(order(entries, leader: leader, draw: draw) == order(shuffled, leader: leader, draw: draw))
      #expect(Set(order(shuffled, leader: leader, draw: draw)) == Set(0..<12))
    }
  }

  @Test(
    "an order that changes entry by entry equals a newly sorted one",
    arguments: 1...30 as ClosedRange<UInt64>)
  func incrementalOrder(_ seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var entries: [Int: Ranking.Entry] = [:]
    var ranking = Ranking()
    for _ in 0..<400 {
      let index = Int.random(in: 0..<12, using: &random)
      if Int.random(in: 0..<5, using: &random) == 0 {
        entries[index] = nil
        ranking.remove(index)
      } else {
        let standing: Ranking.Standing =
          switch Int.random(in: 0...3, using: &random) {
          case 0: .unknown
          case 1: .penalised(Int64.random(in: 0...5, using: &random))
          default: .known(Int64.random(in: 0...9, using: &random))
          }
        let one = entry(index, standing, weight: Int.random(in: 1...3, using: &random))
        entries[index] = one
        ranking.insertOrMove(one)
      }
      #expect(ranking.entries == entries.values.sorted())
    }
  }

  @Test("betterOfTwo picks faster endpoints more often, and the slowest one never")
  func fasterOfTwo() {
    let ranking = Ranking([entry(0, known(10)), entry(1, known(20)), entry(2, known(80)), entry(3, .unknown)])
    var random = SplitMix64(seed: 3)
    var counts = [0, 0, 0, 0]
    for _ in 0..<3000 {
      counts[ranking.entries[ranking.betterOfTwo(inFlight: { _ in 0 }, using: &random)].index] += 1
    }
    // The fastest endpoint is in two of the three pairs, and wins both. The slowest endpoint wins none.
    #expect((1850...2150).contains(counts[0]))
    #expect((850...1150).contains(counts[1]))
    #expect(counts[2] == 0 && counts[3] == 0)
  }

  @Test("betterOfTwo counts the requests under way")
  func lessLoadedOfTwo() {
    let ranking = Ranking([entry(0, known(10)), entry(1, known(25))])
    var random = SplitMix64(seed: 3)
    // The number of requests under way at the faster endpoint, and the index of the endpoint that is picked.
    // The next request counts too, so a load of 2 makes the product of the faster endpoint 10 · 3.
    for (load, expected) in [(0, 0), (1, 0), (2, 1)] {
      let front = ranking.betterOfTwo(inFlight: { $0 == 0 ? load : 0 }, using: &random)
      #expect(ranking.entries[front].index == expected)
    }
  }

  /// When a ranking has one endpoint, `betterOfTwo` picks this endpoint.
  @Test("betterOfTwo draws endpoints by weight, and picks the only endpoint of one")
  func betterOfTwoDrawsByWeight() {
    let entries = [
      entry(0, .unknown, weight: 100), entry(1, .unknown, weight: 100), entry(2, .unknown, weight: 800),
    ]
    let ranking = Ranking(entries)
    var random = SplitMix64(seed: 4)
    var inFlight = [0, 0, 0]
    for _ in 0..<300 {
      let index = ranking.entries[ranking.betterOfTwo(inFlight: { inFlight[$0] }, using: &random)].index
      inFlight[index] += 1
    }
    #expect(inFlight[2] >= 100 && inFlight.min() ?? 0 > 50)
    #expect(Ranking([entries[0]]).betterOfTwo(inFlight: { _ in 9 }, using: &random) == 0)
  }
}
