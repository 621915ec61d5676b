import NetOptCore
import Testing

/// Who may send and who has lost, and what becomes of pairs.
@Suite struct RaceGateTests {
  /// Three legs under way, and a fourth.
  private func underWay(mayBeRepeated: Bool = false) -> Race {
    var race = Race.of([100, 100, 100, 100], mayBeRepeated: mayBeRepeated)
    #expect(race.started() == [0])
    #expect(race.timePasses(leg: 0) == .start(1))
    #expect(race.timePasses(leg: 1) == .start(2))
    return race
  }

  @Test(arguments: [0, 1, 2])
  func theFirstThatIsReadyWins(_ leg: Int) {
    var race = underWay()
    let others = [0, 1, 2].filter { $0 != leg }
    #expect(race.winner == nil)
    #expect(race.ready(leg) == .send)
    #expect(race.winner == leg)
    #expect(race.ready(others[0]) == .lost)
    #expect(race.ready(others[0]) == .lost)
    #expect(race.failed(others[1]) == .wait(until: nil))
    #expect(race.winner == leg)
  }

  @Test func nothingStartsOnceOneHasWon() {
    var race = underWay()
    _ = race.opened(2, at: .at(0))
    #expect(race.ready(1) == .send)
    #expect(race.advance() == .wait(until: nil))
    #expect(race.opened(2, at: .at(0)) == .wait(until: nil))
    #expect(race.timeIsUp(at: .at(1_000_000), connected: false) == .wait(until: nil))
    #expect(race.failed(0) == .wait(until: nil))
    #expect(race.failed(2) == .wait(until: nil))
    #expect(race.expanded(2, into: [.answer(9)]) == .wait(until: nil))
    #expect(race.failed(1) == .wait(until: nil))
  }

  @Test func aPooledConnectionWinsAtOnce() {
    var race = Race.of([100, 100])
    #expect(race.advance() == .start(0))
    #expect(race.ready(0) == .send)
    #expect(race.advance() == .wait(until: nil))
  }

  @Test func aReplayIsRefusedUnlessTheRequestMayBeRepeated() {
    var once = underWay()
    #expect(once.ready(1) == .send)
    #expect(once.ready(1) == .replayRefused)
    #expect(once.ready(1) == .replayRefused)
    #expect(once.ready(0) == .lost)
    var often = underWay(mayBeRepeated: true)
    #expect(often.ready(1) == .send)
    #expect(often.ready(1) == .send)
    #expect(often.ready(0) == .lost)
  }

  @Test("a request that comes back unprocessed is sent again")
  func returned() {
    var race = underWay()
    race.takeBack(from: 1)
    #expect(race.ready(0) == .send)
    race = underWay()
    for _ in 0..<2 {
      #expect(race.ready(1) == .send)
      #expect(race.maySend(1) == false)
      race.takeBack(from: 0)
      #expect(race.winner == 1)
      race.takeBack(from: 1)
      #expect(race.winner == nil)
      #expect(race.maySend(1) == true)
      // Those that lost stay lost.
      #expect(race.ready(0) == .lost)
    }
    #expect(race.ready(1) == .send)
    #expect(race.ready(1) == .replayRefused)
  }

  @Test("when its connection cannot be replaced, the next leg sends what came back")
  func returnedElsewhere() {
    var race = underWay()
    #expect(race.ready(1) == .send)
    race.takeBack(from: 1)
    #expect(race.hasUntried && race.hasUntriedAddress)
    #expect(race.failed(1) == .start(3))
    #expect(!race.hasUntried && !race.hasUntriedAddress)
    #expect(race.ready(1) == .lost)
    #expect(race.failed(3) == .exhausted)
    var other = underWay()
    #expect(other.ready(1) == .send)
    other.takeBack(from: 1)
    #expect(other.advance() == .wait(until: nil))
    #expect(other.failed(1) == .start(3))
    #expect(other.ready(3) == .send)
  }

  @Test func aLegThatIsOverOrHasNotStartedCannotWin() {
    var race = Race.of([100, 100, 100])
    _ = race.started()
    #expect(race.failed(0) == .start(1))
    #expect(race.ready(0) == .lost)
    #expect(race.ready(2) == .lost)
    #expect(race.winner == nil)
    #expect(race.ready(1) == .send)
  }

  // MARK: Pairs

  @Test func aPairStartsTogether() {
    var race = Race.of([100, 200, 100], startsTwo: true)
    #expect(race.started() == [0, 1])
    // The second one is in front.
    #expect(race.opened(0, at: .at(0)) == .wait(until: nil))
    #expect(race.opened(1, at: .at(0)) == .wait(until: .at(200)))
    #expect(race.timeIsUp(at: .at(200), connected: false) == .start(2))
    #expect(race.advance() == .wait(until: nil))
  }

  @Test func aPairOfOneIsOneLeg() {
    var race = Race.of([100], startsTwo: true)
    #expect(race.started() == [0])
    #expect(race.failed(0) == .exhausted)
  }

  @Test func aPairWhoseFirstFailsAtOnceIsOneLeg() {
    var race = Race.of([100, 100, 100], startsTwo: true)
    #expect(race.advance() == .start(0))
    #expect(race.failed(0) == .start(1))
    #expect(race.advance() == .wait(until: nil))
  }

  /// Whoever takes no request at the moment gets it when nobody else does, and once.
  @Test func aLegIsTriedAgainWhenAllOthersHaveFailed() {
    var race = Race.of([100, 100], thenDNS: true)
    #expect(race.started() == [0])
    #expect(race.ready(0) == .send)
    race.tryAgainLast(0)
    race.takeBack(from: 0)
    #expect(race.hasUntriedAddress)
    #expect(race.failed(0) == .start(1))
    #expect(race.failed(1) == .start(2))
    // What DNS has is tried before it.
    #expect(race.expanded(2, into: race.untried([.answer(0), .answer(7)])) == .start(4))
    #expect(race.failed(4) == .start(3))
    #expect(race.legs[3] == race.legs[0])
    #expect(race.ready(3) == .send)
    race.tryAgainLast(3)
    race.takeBack(from: 3)
    #expect(!race.hasUntried)
    #expect(race.failed(3) == .exhausted)
  }
}
