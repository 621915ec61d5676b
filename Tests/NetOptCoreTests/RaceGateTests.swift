import NetOptCore
import Testing

/// The gate's answers to legs that are ready, and the start of two legs at once.
@Suite struct RaceGateTests {
  /// Returns a race with the legs 0, 1 and 2 under way. Leg 3 has not started.
  private func underWay(mayBeRepeated: Bool = false) -> Race {
    var race = Race.of([100, 100, 100, 100], mayBeRepeated: mayBeRepeated)
    #expect(race.started() == [0])
    #expect(race.timePasses(leg: 0) == .start(1))
    #expect(race.timePasses(leg: 1) == .start(2))
    return race
  }

  @Test("the first leg at the gate wins, and every other leg loses", arguments: [0, 1, 2])
  func firstWins(_ leg: Int) {
    var race = underWay()
    let others = [0, 1, 2].filter { $0 != leg }
    #expect(race.winner == nil)
    #expect(race.ready(leg) == .send)
    #expect(race.winner == leg)
    #expect(race.ready(others[0]) == .release)
    #expect(race.ready(others[0]) == .release)
    #expect(race.failed(others[1]) == .wait(until: nil))
    #expect(race.winner == leg)
  }

  @Test("the race starts nothing once a leg has won")
  func afterWin() {
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

  @Test("a leg with a pooled connection wins at once")
  func pooledConnection() {
    var race = Race.of([100, 100])
    #expect(race.advance() == .start(0))
    #expect(race.ready(0) == .send)
    #expect(race.advance() == .wait(until: nil))
  }

  /// A replay is a second visit to the gate: the winner is about to send the request again.
  @Test("the gate refuses a replay unless the request may be repeated")
  func replay() {
    var once = underWay()
    #expect(once.ready(1) == .send)
    #expect(once.ready(1) == .replayRefused)
    #expect(once.ready(1) == .replayRefused)
    #expect(once.ready(0) == .release)
    var often = underWay(mayBeRepeated: true)
    #expect(often.ready(1) == .send)
    #expect(often.ready(1) == .send)
    #expect(often.ready(0) == .release)
  }

  /// The race takes a request back from the winner (`withdrawRequest`) if the server did not process it.
  @Test("a leg sends a request again that came back unprocessed")
  func returned() {
    var race = underWay()
    // Leg 1 has not won, so this call changes nothing.
    race.withdrawRequest(from: 1)
    #expect(race.ready(0) == .send)
    race = underWay()
    for _ in 0..<2 {
      #expect(race.ready(1) == .send)
      #expect(race.maySend(1) == false)
      // Leg 0 is not the winner, so this call changes nothing.
      race.withdrawRequest(from: 0)
      #expect(race.winner == 1)
      race.withdrawRequest(from: 1)
      #expect(race.winner == nil)
      #expect(race.maySend(1) == true)
      // The legs 0 and 2 lost to leg 1. They remain over, although no leg has won now.
      #expect(race.ready(0) == .release)
    }
    #expect(race.ready(1) == .send)
    #expect(race.ready(1) == .replayRefused)
  }

  /// The race takes the request back from leg 1, and leg 1 then fails because it gets no new connection. Leg
  /// 3 is the only leg that has not started.
  @Test("the next leg sends a returned request when its connection cannot be replaced")
  func returnedElsewhere() {
    var race = underWay()
    #expect(race.ready(1) == .send)
    race.withdrawRequest(from: 1)
    #expect(race.hasUntried && race.hasUntriedAddress)
    #expect(race.failed(1) == .start(3))
    #expect(!race.hasUntried && !race.hasUntriedAddress)
    #expect(race.ready(1) == .release)
    #expect(race.failed(3) == .exhausted)
    var other = underWay()
    #expect(other.ready(1) == .send)
    other.withdrawRequest(from: 1)
    #expect(other.advance() == .wait(until: nil))
    #expect(other.failed(1) == .start(3))
    #expect(other.ready(3) == .send)
  }

  @Test("a leg that failed or has not started cannot win")
  func cannotWin() {
    var race = Race.of([100, 100, 100])
    _ = race.started()
    #expect(race.failed(0) == .start(1))
    #expect(race.ready(0) == .release)
    #expect(race.ready(2) == .release)
    #expect(race.winner == nil)
    #expect(race.ready(1) == .send)
  }

  // MARK: Pairs (two legs that start together, `RoutePlan.startsTwo`)

  @Test("the two legs of a pair start together, and the second is the front leg")
  func pair() {
    var race = Race.of([100, 200, 100], startsTwo: true)
    #expect(race.started() == [0, 1])
    // The second leg is the front leg.
    #expect(race.opened(0, at: .at(0)) == .wait(until: nil))
    #expect(race.opened(1, at: .at(0)) == .wait(until: .at(200)))
    #expect(race.timeIsUp(at: .at(200), connected: false) == .start(2))
    #expect(race.advance() == .wait(until: nil))
  }

  @Test("a pair with one leg starts that leg alone")
  func pairWithOneLeg() {
    var race = Race.of([100], startsTwo: true)
    #expect(race.started() == [0])
    #expect(race.failed(0) == .exhausted)
  }

  @Test("a pair whose first leg fails at once leaves one leg under way")
  func pairAfterFailure() {
    var race = Race.of([100, 100, 100], startsTwo: true)
    #expect(race.advance() == .start(0))
    #expect(race.failed(0) == .start(1))
    #expect(race.advance() == .wait(until: nil))
  }

  /// Leg 0 wins, but its endpoint takes no request at present. The race takes the request back, and tries the
  /// leg a second time after all other legs (`tryAgainLast`). The second try has the index 3.
  @Test("tryAgainLast tries a leg once more after all other legs, answers of DNS included")
  func lastTry() {
    var race = Race.of([100, 100], thenDNS: true)
    #expect(race.started() == [0])
    #expect(race.ready(0) == .send)
    race.tryAgainLast(0)
    race.withdrawRequest(from: 0)
    #expect(race.hasUntriedAddress)
    #expect(race.failed(0) == .start(1))
    #expect(race.failed(1) == .start(2))
    // The answers of DNS start before the second try. Address 0 is the one of leg 0, so only address 7 is
    // new.
    #expect(race.expanded(2, into: race.untried([.answer(0), .answer(7)])) == .start(4))
    #expect(race.failed(4) == .start(3))
    #expect(race.legs[3] == race.legs[0])
    #expect(race.ready(3) == .send)
    race.tryAgainLast(3)
    race.withdrawRequest(from: 3)
    #expect(!race.hasUntried)
    #expect(race.failed(3) == .exhausted)
  }
}
