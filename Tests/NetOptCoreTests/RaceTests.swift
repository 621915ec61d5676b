import NetOptCore
import Testing

/// When which leg starts.
@Suite struct RaceTests {
  @Test func startsOneLegAndWaits() {
    var race = Race.of([100, 100])
    #expect(race.advance() == .start(0))
    #expect(race.advance() == .wait(until: nil))
  }

  @Test func isMadeFromAPlan() {
    let legs = [RoutePlan.Leg.listed(1, stagger: 100), .listed(2, stagger: 200)]
    let origin = Origin(.https, host: "a.test")
    var race = Race(
      RoutePlan(origin: origin, policy: .fastest, legs: legs, startsTwo: true, multiplexes: false),
      mayBeRepeated: false)
    #expect(race.legs == legs)
    #expect(race.started() == [0, 1])
    // Twice the stagger: the connection does not multiplex.
    #expect(race.opened(1, at: .at(0)) == .wait(until: .at(400)))
    #expect(race.ready(0) == .send)
    #expect(race.ready(0) == .replayRefused)
  }

  @Test(
    "a leg that is put first replaces the one to its target, starts alone, and the others keep their order")
  func putFirst() {
    for startsTwo in [false, true] {
      var race = Race.of([100, 100, 100], thenDNS: true, startsTwo: startsTwo)
      race.putFirst(.answer(2))
      #expect(race.legs == [.answer(2), .listed(0), .listed(1), .lookUp])
      #expect(race.started() == [0])
      #expect(race.failed(0) == .start(1))
      #expect(race.failed(1) == .start(2))
      #expect(race.failed(2) == .start(3))
      #expect(race.expanded(3, into: [.answer(5)]) == .start(4))
      #expect(race.ready(4) == .send)
    }
    var other = Race.of([100])
    other.putFirst(.answer(9))
    #expect(other.legs == [.answer(9), .listed(0)])
  }

  @Test func theClockStartsWhenTheSocketIsOpened() {
    var race = Race.of([100, 100])
    #expect(race.advance() == .start(0))
    // Until then no time is up.
    #expect(race.timeIsUp(at: .at(10_000), connected: false) == .wait(until: nil))
    #expect(race.opened(0, at: .at(10_000)) == .wait(until: .at(10_100)))
    #expect(race.advance() == .wait(until: .at(10_100)))
    #expect(race.timeIsUp(at: .at(10_099), connected: false) == .wait(until: .at(10_100)))
    #expect(race.timeIsUp(at: .at(10_100), connected: false) == .start(1))
    #expect(race.advance() == .wait(until: nil))
    #expect(race.opened(1, at: .at(10_150)) == .wait(until: .at(10_250)))
  }

  @Test("a last resort starts when nothing is under way, however long that takes")
  func lastResorts() {
    var race = Race(
      [.listed(0).last, .listed(1), .listed(2), .listed(3).last], startsTwo: true, multiplexes: true,
      mayBeRepeated: true)
    #expect(race.started() == [1, 2])
    #expect(race.hasUntried == false)
    #expect(race.timePasses(leg: 2) == .wait(until: nil))
    #expect(race.failed(1) == .wait(until: nil))
    #expect(race.failed(2) == .start(0))
    #expect(race.timePasses(leg: 0) == .wait(until: nil))
    #expect(race.failed(0) == .start(3))
    #expect(race.failed(3) == .exhausted)
  }

  @Test("a leg that begins anew does so before any other one starts")
  func beginsAnew() {
    var race = Race.of([100, 100], thenDNS: true)
    #expect(race.started() == [0])
    race.tryAgainNext(0)
    #expect(race.failed(0) == .start(3))
    #expect(race.legs[3] == race.legs[0])
    // It has its turn when the others have failed, too, and that once.
    race.tryAgainLast(3)
    race.tryAgainLast(3)
    #expect(race.failed(3) == .start(1))
    #expect(race.failed(1) == .start(2))
    #expect(race.failed(2) == .start(4))
    #expect(race.failed(4) == .exhausted)
  }

  @Test func aSecondSocketDoesNotStartTheClockAgain() {
    var race = Race.of([100, 100])
    _ = race.started()
    #expect(race.opened(0, at: .at(0)) == .wait(until: .at(100)))
    #expect(race.opened(0, at: .at(50)) == .wait(until: .at(100)))
  }

  @Test func aSecondSocketGivesNoMoreTime() {
    var race = Race.of([100, 100, 100, 100])
    _ = race.started()
    #expect(race.timePasses(leg: 0) == .start(1))
    #expect(race.timePasses(leg: 1) == .start(2))
    #expect(race.timePasses(leg: 2) == .wait(until: nil))
    // It has had its time, although nothing came of it.
    #expect(race.opened(2, at: .at(500)) == .wait(until: nil))
  }

  @Test func theLegThatStartedLastIsInFront() {
    var race = Race.of([100, 100])
    #expect(race.front == nil)
    _ = race.started()
    #expect(race.front == 0)
    #expect(race.failed(0) == .start(1))
    #expect(race.front == 1)
  }

  @Test func onlyTheLegInFrontHasAClock() {
    var race = Race.of([100, 100, 100])
    _ = race.started()
    #expect(race.failed(0) == .start(1))
    #expect(race.opened(0, at: .at(0)) == .wait(until: nil))
    #expect(race.opened(1, at: .at(5)) == .wait(until: .at(105)))
    #expect(race.timeIsUp(at: .at(105), connected: false) == .start(2))
    #expect(race.opened(1, at: .at(110)) == .wait(until: nil))
  }

  /// Stagger, whether the connection multiplexes, and when time is up without and with TCP connected.
  @Test(arguments: [
    (50, true, 50, 100), (249, true, 249, 498), (250, true, 250, 500), (251, true, 251, 501),
    (2000, true, 2000, 2250),
    (50, false, 100, 150), (250, false, 500, 750), (2000, false, 4000, 4250), (0, true, 0, 0),
  ])
  func isExtendedOnceWhenTCPIsConnected(_ stagger: Int, _ multiplexes: Bool, _ first: Int, _ second: Int) {
    var race = Race.of([stagger, 100], multiplexes: multiplexes)
    _ = race.started()
    #expect(race.opened(0, at: .at(0)) == .wait(until: .at(first)))
    var silent = race
    #expect(silent.timeIsUp(at: .at(first), connected: false) == .start(1))
    #expect(race.timeIsUp(at: .at(first), connected: true) == .wait(until: .at(second)))
    #expect(race.timeIsUp(at: .at(second), connected: true) == .start(1))
  }

  @Test func theExtensionCountsFromTheMomentThatWasDue() {
    var race = Race.of([100, 100])
    _ = race.started()
    _ = race.opened(0, at: .at(0))
    #expect(race.timeIsUp(at: .at(130), connected: true) == .wait(until: .at(200)))
  }

  @Test func eachLegIsExtendedOnItsOwn() {
    var race = Race.of([100, 60, 100])
    _ = race.started()
    _ = race.opened(0, at: .at(0))
    _ = race.timeIsUp(at: .at(100), connected: true)
    #expect(race.timeIsUp(at: .at(200), connected: true) == .start(1))
    #expect(race.opened(1, at: .at(200)) == .wait(until: .at(260)))
    #expect(race.timeIsUp(at: .at(260), connected: true) == .wait(until: .at(320)))
    #expect(race.timeIsUp(at: .at(320), connected: true) == .start(2))
  }

  @Test func aFailedLegStartsTheNextAtOnce() {
    var race = Race.of([100, 100, 100])
    _ = race.started()
    _ = race.opened(0, at: .at(0))
    #expect(race.failed(0) == .start(1))
    // The time of the leg that failed is forgotten.
    #expect(race.advance() == .wait(until: nil))
    #expect(race.timeIsUp(at: .at(100), connected: false) == .wait(until: nil))
    #expect(race.failed(1) == .start(2))
    #expect(race.failed(2) == .exhausted)
  }

  @Test func aLegBehindThatFailsStartsTheNextToo() {
    var race = Race.of([100, 100, 100])
    _ = race.started()
    #expect(race.timePasses(leg: 0) == .start(1))
    _ = race.opened(1, at: .at(1000))
    #expect(race.failed(0) == .start(2))
    #expect(race.opened(2, at: .at(1010)) == .wait(until: .at(1110)))
  }

  @Test func aLegFailsOnce() {
    var race = Race.of([100, 100, 100])
    _ = race.started()
    #expect(race.failed(0) == .start(1))
    #expect(race.failed(0) == .wait(until: nil))
    // Nor does one fail that has not started.
    #expect(race.failed(2) == .wait(until: nil))
    #expect(race.failed(1) == .start(2))
  }

  @Test func atMostThreeAreUnderWay() {
    var race = Race.of([100, 100, 100, 100, 100])
    _ = race.started()
    #expect(race.timePasses(leg: 0) == .start(1))
    #expect(race.timePasses(leg: 1) == .start(2))
    #expect(race.opened(2, at: .at(2000)) == .wait(until: .at(2100)))
    #expect(race.timeIsUp(at: .at(2100), connected: false) == .wait(until: nil))
    #expect(Race.width == 3)
    #expect(race.failed(1) == .start(3))
    #expect(race.failed(0) == .start(4))
    #expect(race.failed(2) == .wait(until: nil))
  }

  @Test func timeDoesNotStartALegThatIsNotThere() {
    var race = Race.of([100])
    _ = race.started()
    _ = race.opened(0, at: .at(0))
    #expect(race.timeIsUp(at: .at(100), connected: false) == .wait(until: nil))
    #expect(race.failed(0) == .exhausted)
  }

  @Test func itIsExhaustedOnce() {
    var race = Race.of([100])
    _ = race.started()
    #expect(race.opened(0, at: .at(0)) == .wait(until: .at(100)))
    #expect(race.failed(0) == .exhausted)
    #expect(race.timeIsUp(at: .at(100), connected: false) == .wait(until: nil))
    #expect(race.failed(0) == .wait(until: nil))
    #expect(race.ready(0) == .lost)
  }

  @Test func aTimerMayBeLate() {
    var race = Race.of([100, 100, 100])
    _ = race.started()
    #expect(race.opened(0, at: .at(0)) == .wait(until: .at(100)))
    // The time that the extension gave has passed as well.
    #expect(race.timeIsUp(at: .at(900), connected: true) == .wait(until: .at(200)))
    #expect(race.timeIsUp(at: .at(900), connected: true) == .start(1))
    #expect(race.timeIsUp(at: .at(900), connected: true) == .wait(until: nil))
  }

  @Test func withoutLegsItIsExhausted() {
    var race = Race.of([])
    #expect(race.advance() == .exhausted)
    #expect(race.winner == nil)
  }
}
