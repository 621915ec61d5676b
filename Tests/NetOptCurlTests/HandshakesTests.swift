import NetOptCore
import Testing

@testable import NetOptCurl

@Suite struct HandshakesTests {
  private final class Probe {}

  private let start = MonotonicInstant(nanoseconds: 1_000_000_000)
  private func next(
    _ handshakes: inout Handshakes<Probe>, at now: MonotonicInstant, except stale: Probe? = nil
  ) -> Probe? {
    handshakes.next(at: now) { $0 !== stale }
  }

  private var apart: Duration { Handshakes<Probe>.apart }

  @Test func theFirstBeginsAtOnceAndTheOthersApart() {
    var handshakes = Handshakes<Probe>()
    let (a, b, c) = (Probe(), Probe(), Probe())
    for probe in [a, b, c] { handshakes.add(probe) }
    #expect(next(&handshakes, at: start) === a)
    #expect(next(&handshakes, at: start) == nil)
    #expect(handshakes.due == start + apart)
    #expect(next(&handshakes, at: start + apart) === b)
    #expect(handshakes.due == start + apart + apart)
    // A loop that was held up does not make up for it: the next one is as far apart again.
    let late = start + .seconds(1)
    #expect(next(&handshakes, at: late) === c)
    #expect(handshakes.due == nil)
  }

  @Test func whoComesLaterBeginsAtOnceWhenNoneHasBegunOfLate() {
    var handshakes = Handshakes<Probe>()
    let (a, b) = (Probe(), Probe())
    handshakes.add(a)
    #expect(next(&handshakes, at: start) === a)
    handshakes.add(b)
    #expect(next(&handshakes, at: start + .microseconds(1999)) == nil)
    #expect(next(&handshakes, at: start + apart) === b)
  }

  @Test func whoHasEndedTakesNoTurn() {
    var handshakes = Handshakes<Probe>()
    let (a, b) = (Probe(), Probe())
    handshakes.add(a)
    handshakes.add(b)
    #expect(handshakes.remove { $0 === a } === a)
    #expect(next(&handshakes, at: start) === b)
    #expect(handshakes.remove { $0 === b } == nil)
    #expect(next(&handshakes, at: start + .seconds(1)) == nil)
  }

  @Test func whoCanBeginNoMoreUsesNoTurnUp() {
    var handshakes = Handshakes<Probe>()
    let (stale, b) = (Probe(), Probe())
    handshakes.add(stale)
    handshakes.add(b)
    #expect(next(&handshakes, at: start, except: stale) === b)
    #expect(!handshakes.contains(stale))
  }

  @Test func whoIsWaitedForBeginsAtOnce() {
    var handshakes = Handshakes<Probe>()
    let (a, b, c) = (Probe(), Probe(), Probe())
    for probe in [a, b, c] { handshakes.add(probe) }
    #expect(next(&handshakes, at: start) === a)
    #expect(handshakes.hurry { $0 === c })
    #expect(!handshakes.hurry { $0 === a })
    #expect(next(&handshakes, at: start) === c)
    #expect(next(&handshakes, at: start) == nil)
    #expect(next(&handshakes, at: start + apart) === b)
  }
}
