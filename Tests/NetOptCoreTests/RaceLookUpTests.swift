import NetOptCore
import Testing

/// The start of the DNS look-up in a race, and the legs for its answers.
@Suite struct RaceLookUpTests {
  /// Returns a race of listed legs and a look-up after them. The first leg has started and opened its socket.
  ///
  /// - Parameters:
  ///   - count: the number of listed legs.
  ///   - stagger: the stagger of each leg, in milliseconds.
  ///   - moment: when the first leg opened its socket, in milliseconds since the start of the clock.
  private func begun(_ count: Int, stagger: Int = 5000, at moment: Int = 0) -> Race {
    var race = Race.of([Int](repeating: stagger, count: count), thenDNS: true)
    #expect(race.started() == [0])
    _ = race.opened(0, at: .at(moment))
    return race
  }

  /// Returns a race of five listed legs and a look-up. The listed legs 0, 1 and 2 are under way, and so is
  /// the look-up, which has the index 5. The listed legs 3 and 4 have not started.
  private func full() -> Race {
    var race = begun(5, stagger: 50)
    #expect(race.timeIsUp(at: .at(50), connected: false) == .start(1))
    #expect(race.timePasses(leg: 1, from: .at(50)) == .start(2))
    #expect(race.timePasses(leg: 2, from: .at(100)) == .start(5))
    return race
  }

  // MARK: Start

  @Test("the look-up starts in its turn, after the listed legs")
  func turn() {
    var race = begun(2, stagger: 100)
    #expect(race.timeIsUp(at: .at(100), connected: false) == .start(1))
    #expect(race.timePasses(leg: 1, from: .at(100)) == .start(2))
    // No leg is left to wait for.
    #expect(race.advance() == .wait(until: nil))
    #expect(race.timeIsUp(at: .at(2000), connected: false) == .wait(until: nil))
  }

  @Test("the look-up starts 1 s after the first socket opens at the latest")
  func delay() {
    #expect(Race.lookUpDelay == .seconds(1))
    var race = Race.of([5000, 5000], thenDNS: true)
    _ = race.started()
    #expect(race.opened(0, at: .at(10)) == .wait(until: .at(1010)))
    #expect(race.timeIsUp(at: .at(1009), connected: false) == .wait(until: .at(1010)))
    #expect(race.timeIsUp(at: .at(1010), connected: false) == .start(2))
  }

  @Test("a look-up that starts early does not shorten the front leg's stagger")
  func frontStagger() {
    var race = begun(2, stagger: 1500)
    #expect(race.timeIsUp(at: .at(1000), connected: true) == .start(2))
    #expect(race.front == 0)
    #expect(race.advance() == .wait(until: .at(1500)))
    #expect(race.timeIsUp(at: .at(1500), connected: true) == .wait(until: .at(1750)))
    #expect(race.timeIsUp(at: .at(1750), connected: true) == .start(1))
  }

  @Test("later sockets do not delay the look-up, and the look-up starts once")
  func laterSockets() {
    var race = begun(3)
    #expect(race.failed(0) == .start(1))
    #expect(race.advance() == .wait(until: .at(1000)))
    #expect(race.opened(1, at: .at(900)) == .wait(until: .at(1000)))
    #expect(race.timeIsUp(at: .at(1000), connected: false) == .start(3))
    // The look-up does not start twice.
    #expect(race.opened(1, at: .at(1100)) == .wait(until: .at(5900)))
  }

  @Test("the look-up does not start once a leg has won")
  func afterWin() {
    var race = begun(2)
    #expect(race.ready(0) == .send)
    #expect(race.timeIsUp(at: .at(1000), connected: false) == .wait(until: nil))
  }

  @Test("the look-up and the next leg both start when both are due at the same moment")
  func sameMoment() {
    var race = begun(2, stagger: 1000)
    #expect(race.timeIsUp(at: .at(1000), connected: false) == .start(2))
    #expect(race.advance() == .wait(until: .at(1000)))
    #expect(race.timeIsUp(at: .at(1000), connected: false) == .start(1))
    #expect(race.advance() == .wait(until: nil))
  }

  @Test("the look-up starts before the remaining legs of a list that has three legs under way")
  func fullList() {
    var race = full()
    #expect(race.advance() == .wait(until: nil))
    #expect(race.front == 2)
  }

  @Test("in a pair with the look-up, the first leg's stagger decides when the next leg starts")
  func pairWithLookUp() {
    var race = Race(
      [.listed(0), .lookUp, .listed(1)], startsTwo: true, multiplexes: true, mayBeRepeated: false)
    #expect(race.started() == [0, 1])
    #expect(race.opened(0, at: .at(0)) == .wait(until: .at(100)))
    #expect(race.timeIsUp(at: .at(100), connected: false) == .start(2))
  }

  @Test("a look-up that comes first starts alone")
  func firstLookUp() {
    var race = Race([.lookUp, .listed(0)], startsTwo: false, multiplexes: true, mayBeRepeated: false)
    #expect(race.started() == [0])
    #expect(race.failed(0) == .start(1))
  }

  // MARK: Answers

  @Test("the race replaces a look-up with legs for its answers and tries them in order")
  func legsForAnswers() {
    var race = begun(1, stagger: 100)
    #expect(race.timeIsUp(at: .at(100), connected: false) == .start(1))
    #expect(race.expanded(1, into: [.answer(7, stagger: 70), .answer(8, stagger: 80)]) == .start(2))
    #expect(race.legs == [.listed(0), .lookUp, .answer(7, stagger: 70), .answer(8, stagger: 80)])
    #expect(race.front == 2)
    #expect(race.opened(2, at: .at(200)) == .wait(until: .at(270)))
    #expect(race.timeIsUp(at: .at(270), connected: false) == .start(3))
    #expect(race.opened(3, at: .at(300)) == .wait(until: .at(380)))
    #expect(race.ready(3) == .send)
  }

  @Test("the answers of a race that has only a look-up start one at a time")
  func onlyLookUp() {
    var race = Race.of([], thenDNS: true, startsTwo: true)
    #expect(race.started() == [0])
    #expect(race.expanded(0, into: [.answer(7), .answer(8)]) == .start(1))
    #expect(race.advance() == .wait(until: nil))
    #expect(race.failed(1) == .start(2))
    #expect(race.failed(2) == .exhausted)
  }

  @Test("a look-up without new answers counts as failed")
  func noAnswers() {
    var race = begun(1, stagger: 100)
    #expect(race.timeIsUp(at: .at(100), connected: false) == .start(1))
    #expect(race.expanded(1, into: []) == .wait(until: nil))
    #expect(race.failed(0) == .exhausted)
    var alone = Race.of([], thenDNS: true)
    _ = alone.started()
    #expect(alone.expanded(0, into: []) == .exhausted)
  }

  @Test("the race tries answers of DNS before the remaining legs of the list")
  func answersFirst() {
    var race = begun(3)
    #expect(race.timeIsUp(at: .at(1000), connected: false) == .start(3))
    #expect(race.expanded(3, into: [.answer(7), .answer(8)]) == .start(4))
    #expect(race.failed(4) == .start(5))
    #expect(race.failed(5) == .start(1))
    #expect(race.failed(0) == .start(2))
  }

  @Test("a failed look-up starts the next leg of the list if the list has fewer than three under way")
  func failure() {
    var race = begun(2)
    #expect(race.timeIsUp(at: .at(1000), connected: false) == .start(2))
    #expect(race.failed(2) == .start(1))
    // When three legs of the list are under way, the failure starts no leg, and the race loses none.
    var full = full()
    #expect(full.failed(5) == .wait(until: nil))
    #expect(full.failed(1) == .start(3))
  }

  @Test("list and DNS have up to three legs under way each, and a failed leg starts one of its source")
  func shares() {
    var race = full()
    // The listed legs 0, 1 and 2 are under way. The answers are the legs 6 to 9, and 6, 7 and 8 start.
    #expect(race.expanded(5, into: (20...23).map { .answer($0) }) == .start(6))
    #expect(race.timePasses(leg: 6, from: .at(200)) == .start(7))
    #expect(race.timePasses(leg: 7, from: .at(300)) == .start(8))
    #expect(race.timePasses(leg: 8, from: .at(400)) == .wait(until: nil))
    // A failed leg makes room for a leg of its own source, whichever leg is first in the queue.
    #expect(race.failed(0) == .start(3))
    #expect(race.failed(8) == .start(9))
    #expect(race.failed(6) == .wait(until: nil))
    #expect(race.failed(2) == .start(4))
    #expect([1, 3, 4, 7].map { race.failed($0) } == [Race.Step](repeating: .wait(until: nil), count: 4))
    #expect(race.failed(9) == .exhausted)
  }

  @Test("untried drops answers whose targets have started, and repeated answers")
  func triedAnswers() {
    var race = begun(3)
    #expect(race.failed(0) == .start(1))
    #expect(race.timeIsUp(at: .at(1000), connected: false) == .start(3))
    // The legs to the addresses 0 and 1 have started. The leg to address 2 has not.
    let answers = [0, 1, 7, 7, 2].map { RoutePlan.Leg.answer($0) }
    #expect(race.untried(answers) == [.answer(7), .answer(2)])
  }

  @Test("an answer replaces the waiting leg of the list to the same address")
  func sameAddress() {
    var race = begun(4)
    #expect(race.timeIsUp(at: .at(1000), connected: false) == .start(4))
    // Leg 2 is the waiting leg to address 2. The race drops leg 2, and the answer becomes leg 5.
    #expect(race.expanded(4, into: [.answer(2)]) == .start(5))
    #expect(race.failed(5) == .start(1))
    #expect(race.failed(1) == .start(3))
    #expect(race.failed(3) == .wait(until: nil))
    #expect(race.failed(0) == .exhausted)
  }
}
