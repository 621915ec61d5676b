import NetOptCore
import Testing

/// The moments at which a race starts its legs.
@Suite struct RaceTests {
  @Test("a race starts one leg and then waits")
  func oneLeg() {
    var race = Race.of([100, 100])
    #expect(race.advance() == .start(0))
    #expect(race.advance() == .wait(until: nil))
  }

  @Test("a race takes its legs, staggers and two-leg start from the plan, and refuses a replay")
  func fromPlan() {
    let legs = [RoutePlan.Leg.listed(1, stagger: 100), .listed(2, stagger: 200)]
    let origin = Origin(.https, host: "a.test")
    var race = Race(
      RoutePlan(origin: origin, policy: .fastest, legs: legs, startsTwo: true, multiplexes: false),
      mayBeRepeated: false)
    #expect(race.legs == legs)
    #expect(race.started() == [0, 1])
    // The race doubles the stagger because the connection does not multiplex.
    #expect(race.opened(1, at: .at(0)) == .wait(until: .at(400)))
    #expect(race.ready(0) == .send)
    #expect(race.ready(0) == .replayRefused)
  }

  @Test(
    "putFirst moves a leg to the front, replaces the leg with its target, and starts it alone")
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

  @Test("a leg's stagger runs from the moment its socket opens")
  func staggerStart() {
    var race = Race.of([100, 100])
    #expect(race.advance() == .start(0))
    // The stagger does not run until the socket opens.
    #expect(race.timeIsUp(at: .at(10_000), connected: false) == .wait(until: nil))
    #expect(race.opened(0, at: .at(10_000)) == .wait(until: .at(10_100)))
    #expect(race.advance() == .wait(until: .at(10_100)))
    #expect(race.timeIsUp(at: .at(10_099), connected: false) == .wait(until: .at(10_100)))
    #expect(race.timeIsUp(at: .at(10_100), connected: false) == .start(1))
    #expect(race.advance() == .wait(until: nil))
    #expect(race.opened(1, at: .at(10_150)) == .wait(until: .at(10_250)))
  }

  @Test("a race starts a leg that starts alone only when no leg is under way, however long that takes")
  func lastResorts() {
    var race = Race(
      [.listed(0).startingAlone, .listed(1), .listed(2), .listed(3).startingAlone], startsTwo: true,
      multiplexes: true,
      mayBeRepeated: true)
    #expect(race.started() == [1, 2])
    // The legs 0 and 3 have not started, but `hasUntried` does not count legs that start alone.
    #expect(race.hasUntried == false)
    #expect(race.timePasses(leg: 2) == .wait(until: nil))
    #expect(race.failed(1) == .wait(until: nil))
    #expect(race.failed(2) == .start(0))
    #expect(race.timePasses(leg: 0) == .wait(until: nil))
    #expect(race.failed(0) == .start(3))
    #expect(race.failed(3) == .exhausted)
  }

  @Test("tryAgainNext queues a leg before all others, and tryAgainLast queues it after all others once")
  func beginsAnew() {
    var race = Race.of([100, 100], thenDNS: true)
    #expect(race.started() == [0])
    // The new try of leg 0 is leg 3.
    race.tryAgainNext(0)
    #expect(race.failed(0) == .start(3))
    #expect(race.legs[3] == race.legs[0])
    // Leg 4 is a third try, after all other legs. The second call adds no leg.
    race.tryAgainLast(3)
    race.tryAgainLast(3)
    #expect(race.failed(3) == .start(1))
    #expect(race.failed(1) == .start(2))
    #expect(race.failed(2) == .start(4))
    #expect(race.failed(4) == .exhausted)
  }

  @Test("a leg's second socket does not restart its stagger")
  func secondSocket() {
    var race = Race.of([100, 100])
    _ = race.started()
    #expect(race.opened(0, at: .at(0)) == .wait(until: .at(100)))
    #expect(race.opened(0, at: .at(50)) == .wait(until: .at(100)))
  }

  @Test("a socket that a leg opens after its stagger is over gives the leg no more time")
  func lateSocket() {
    var race = Race.of([100, 100, 100, 100])
    _ = race.started()
    #expect(race.timePasses(leg: 0) == .start(1))
    #expect(race.timePasses(leg: 1) == .start(2))
    #expect(race.timePasses(leg: 2) == .wait(until: nil))
    // The stagger of leg 2 has passed, although no other leg could start. The second socket of leg 2 does not
    // begin another stagger.
    #expect(race.opened(2, at: .at(500)) == .wait(until: nil))
  }

  @Test("the leg that started last is the front leg")
  func frontLeg() {
    var race = Race.of([100, 100])
    #expect(race.front == nil)
    _ = race.started()
    #expect(race.front == 0)
    #expect(race.failed(0) == .start(1))
    #expect(race.front == 1)
  }

  @Test("only the front leg has a stagger timer")
  func frontTimer() {
    var race = Race.of([100, 100, 100])
    _ = race.started()
    #expect(race.failed(0) == .start(1))
    #expect(race.opened(0, at: .at(0)) == .wait(until: nil))
    #expect(race.opened(1, at: .at(5)) == .wait(until: .at(105)))
    #expect(race.timeIsUp(at: .at(105), connected: false) == .start(2))
    #expect(race.opened(1, at: .at(110)) == .wait(until: nil))
  }

  /// The stagger in milliseconds, whether connections multiplex, and the moment at which the stagger ends, in
  /// milliseconds: first without a TCP connection, then with one.
  @Test(
    "the race extends a stagger once, by at most 250 ms, when TCP is connected",
    arguments: [
      (50, true, 50, 100), (249, true, 249, 498), (250, true, 250, 500), (251, true, 251, 501),
      (2000, true, 2000, 2250),
      (50, false, 100, 150), (250, false, 500, 750), (2000, false, 4000, 4250), (0, true, 0, 0),
    ])
  func staggerExtension(_ stagger: Int, _ multiplexes: Bool, _ first: Int, _ second: Int) {
    var race = Race.of([stagger, 100], multiplexes: multiplexes)
    _ = race.started()
    #expect(race.opened(0, at: .at(0)) == .wait(until: .at(first)))
    var silent = race
    #expect(silent.timeIsUp(at: .at(first), connected: false) == .start(1))
    #expect(race.timeIsUp(at: .at(first), connected: true) == .wait(until: .at(second)))
    #expect(race.timeIsUp(at: .at(second), connected: true) == .start(1))
  }

  @Test("an extension counts from the due time, not from the late timer")
  func extensionStart() {
    var race = Race.of([100, 100])
    _ = race.started()
    _ = race.opened(0, at: .at(0))
    #expect(race.timeIsUp(at: .at(130), connected: true) == .wait(until: .at(200)))
  }

  @Test("the race extends each leg's stagger separately")
  func separateExtensions() {
    var race = Race.of([100, 60, 100])
    _ = race.started()
    _ = race.opened(0, at: .at(0))
    _ = race.timeIsUp(at: .at(100), connected: true)
    #expect(race.timeIsUp(at: .at(200), connected: true) == .start(1))
    #expect(race.opened(1, at: .at(200)) == .wait(until: .at(260)))
    #expect(race.timeIsUp(at: .at(260), connected: true) == .wait(until: .at(320)))
    #expect(race.timeIsUp(at: .at(320), connected: true) == .start(2))
  }

  @Test("a front leg that fails starts the next leg at once and ends the front leg's stagger")
  func frontFailure() {
    var race = Race.of([100, 100, 100])
    _ = race.started()
    _ = race.opened(0, at: .at(0))
    #expect(race.failed(0) == .start(1))
    // The stagger of the failed leg no longer counts.
    #expect(race.advance() == .wait(until: nil))
    #expect(race.timeIsUp(at: .at(100), connected: false) == .wait(until: nil))
    #expect(race.failed(1) == .start(2))
    #expect(race.failed(2) == .exhausted)
  }

  @Test("a leg that fails behind the front leg starts the next leg too")
  func otherFailure() {
    var race = Race.of([100, 100, 100])
    _ = race.started()
    #expect(race.timePasses(leg: 0) == .start(1))
    _ = race.opened(1, at: .at(1000))
    #expect(race.failed(0) == .start(2))
    #expect(race.opened(2, at: .at(1010)) == .wait(until: .at(1110)))
  }

  @Test("the race ignores a second failure of a leg and a failure of a leg that has not started")
  func repeatedFailure() {
    var race = Race.of([100, 100, 100])
    _ = race.started()
    #expect(race.failed(0) == .start(1))
    #expect(race.failed(0) == .wait(until: nil))
    // A leg that has not started cannot fail.
    #expect(race.failed(2) == .wait(until: nil))
    #expect(race.failed(1) == .start(2))
  }

  @Test("a race has at most three legs of the list under way")
  func width() {
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

  @Test("a race with no more legs starts nothing when the stagger is over")
  func noNextLeg() {
    var race = Race.of([100])
    _ = race.started()
    _ = race.opened(0, at: .at(0))
    #expect(race.timeIsUp(at: .at(100), connected: false) == .wait(until: nil))
    #expect(race.failed(0) == .exhausted)
  }

  @Test("a race whose only leg failed reports that it is exhausted once, and no leg wins any more")
  func exhaustion() {
    var race = Race.of([100])
    _ = race.started()
    #expect(race.opened(0, at: .at(0)) == .wait(until: .at(100)))
    #expect(race.failed(0) == .exhausted)
    #expect(race.timeIsUp(at: .at(100), connected: false) == .wait(until: nil))
    #expect(race.failed(0) == .wait(until: nil))
    #expect(race.ready(0) == .release)
  }

  @Test("a late timer extends the stagger and then starts the next leg at once")
  func lateTimer() {
    var race = Race.of([100, 100, 100])
    _ = race.started()
    #expect(race.opened(0, at: .at(0)) == .wait(until: .at(100)))
    // The timer is so late that the extension, which ends at 200 ms, is over as well.
    #expect(race.timeIsUp(at: .at(900), connected: true) == .wait(until: .at(200)))
    #expect(race.timeIsUp(at: .at(900), connected: true) == .start(1))
    #expect(race.timeIsUp(at: .at(900), connected: true) == .wait(until: nil))
  }

  @Test("a race without legs is exhausted and has no winner")
  func noLegs() {
    var race = Race.of([])
    #expect(race.advance() == .exhausted)
    #expect(race.winner == nil)
  }
}
