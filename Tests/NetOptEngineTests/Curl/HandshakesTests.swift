import NetOptCore
import Testing

@testable import NetOptEngine

@Suite struct HandshakesTests {
  private final class Probe {}

  private let start = MonotonicInstant(nanoseconds: 1_000_000_000)
  private func next(
    _ handshakes: inout Handshakes<Probe>, at now: MonotonicInstant, except stale: Probe? = nil
  ) -> Probe? {
    handshakes.next(at: now) { $0 !== stale }
  }

  private var apart: Duration { Handshakes<Probe>.apart }
  private var headStart: Duration { Handshakes<Probe>.headStart }

  @Test func theFirstHasAHeadStartAndTheOthersBeginApart() {
    var handshakes = Handshakes<Probe>()
    let (a, b, c) = (Probe(), Probe(), Probe())
    for probe in [a, b, c] { handshakes.add(probe, at: start, isKept: true) }
    #expect(next(&handshakes, at: start) === a)
    #expect(next(&handshakes, at: start) == nil)
    // It may be one that stays silent: that costs the others one head start, and not one for each.
    #expect(handshakes.due == start + headStart)
    #expect(next(&handshakes, at: start + headStart + .microseconds(-1)) == nil)
    #expect(next(&handshakes, at: start + headStart) === b)
    #expect(handshakes.due == start + headStart + apart)
    #expect(next(&handshakes, at: start + headStart + apart) === c)
    #expect(handshakes.due == nil)
  }

  /// The request that waited for it has its turn; then the others begin, a little apart, whatever ends meanwhile.
  @Test func theHeadStartEndsSoonAfterTheFirst() {
    var handshakes = Handshakes<Probe>()
    let (a, b, c, d) = (Probe(), Probe(), Probe(), Probe())
    for probe in [a, b, c, d] { handshakes.add(probe, at: start, isKept: true) }
    #expect(next(&handshakes, at: start) === a)
    let ready = start + .milliseconds(3)
    handshakes.ended(a, at: ready)
    #expect(handshakes.due == ready + apart)
    #expect(next(&handshakes, at: ready + apart) === b)
    #expect(handshakes.due == ready + apart + apart)
    handshakes.ended(b, at: ready + apart)
    #expect(handshakes.due == ready + apart + apart)
    // A loop that was held up does not make up for it: the next one is as far apart again.
    let late = ready + apart * 4
    #expect(next(&handshakes, at: late) === c)
    #expect(next(&handshakes, at: late) == nil)
    #expect(next(&handshakes, at: late + apart) === d)
  }

  @Test func whoComesLaterBeginsAtOnceWhenNoneHasBegunOfLate() {
    var handshakes = Handshakes<Probe>()
    let (a, b, c, d) = (Probe(), Probe(), Probe(), Probe())
    handshakes.add(a, at: start, isKept: true)
    #expect(next(&handshakes, at: start) === a)
    handshakes.add(b, at: start + apart, isKept: true)
    #expect(next(&handshakes, at: start + apart) == nil)
    #expect(next(&handshakes, at: start + headStart) === b)
    // It is the first of those that come then.
    let later = start + headStart * 3
    for probe in [c, d] { handshakes.add(probe, at: later, isKept: true) }
    #expect(next(&handshakes, at: later) === c)
    #expect(handshakes.due == later + headStart)
  }

  /// One that ends before its turn ends nobody's head start.
  @Test func whoEndsWhileItWaitsTakesNothingFromTheFirst() {
    var handshakes = Handshakes<Probe>()
    let (a, b, c) = (Probe(), Probe(), Probe())
    for probe in [a, b, c] { handshakes.add(probe, at: start, isKept: true) }
    #expect(next(&handshakes, at: start) === a)
    handshakes.ended(b, at: start + apart)
    #expect(!handshakes.contains(b))
    #expect(handshakes.due == start + headStart)
    #expect(next(&handshakes, at: start + headStart) === c)
  }

  @Test func whoHasEndedTakesNoTurn() {
    var handshakes = Handshakes<Probe>()
    let (a, b) = (Probe(), Probe())
    handshakes.add(a, at: start, isKept: true)
    handshakes.add(b, at: start, isKept: true)
    #expect(handshakes.remove { $0 === a } === a)
    #expect(next(&handshakes, at: start) === b)
    #expect(handshakes.remove { $0 === b } == nil)
    #expect(next(&handshakes, at: start + .seconds(1)) == nil)
  }

  @Test func whoCanBeginNoMoreUsesNoTurnUp() {
    var handshakes = Handshakes<Probe>()
    let (stale, b) = (Probe(), Probe())
    handshakes.add(stale, at: start, isKept: true)
    handshakes.add(b, at: start, isKept: true)
    #expect(next(&handshakes, at: start, except: stale) === b)
    #expect(!handshakes.contains(stale))
  }

  @Test func whoIsWaitedForBeginsAtOnce() {
    var handshakes = Handshakes<Probe>()
    let (a, b, c) = (Probe(), Probe(), Probe())
    for probe in [a, b, c] { handshakes.add(probe, at: start, isKept: true) }
    #expect(next(&handshakes, at: start) === a)
    #expect(handshakes.hurry { $0 === c })
    #expect(!handshakes.hurry { $0 === a })
    #expect(next(&handshakes, at: start) === c)
    #expect(next(&handshakes, at: start) == nil)
    // That is the end of the first one's head start.
    #expect(next(&handshakes, at: start + apart) === b)
  }

  /// No request waits for what is only looked at from time to time: it holds nobody up, and takes no head start from others.
  @Test func whoIsNotKeptHasNoHeadStart() {
    var handshakes = Handshakes<Probe>()
    let (look, a, b) = (Probe(), Probe(), Probe())
    handshakes.add(look, at: start, isKept: false)
    #expect(next(&handshakes, at: start) === look)
    for probe in [a, b] { handshakes.add(probe, at: start + apart, isKept: true) }
    #expect(next(&handshakes, at: start + apart) === a)
    #expect(handshakes.due == start + apart + headStart)
  }
}
