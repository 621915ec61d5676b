import NetOptCore
import Testing

@testable import NetOptCurl

@Suite struct HandshakesTests {
  private final class Probe {}

  private let start = MonotonicInstant(nanoseconds: 1_000_000_000)
  private var apart: Duration { Handshakes<Probe>.apart }

  @Test func theFirstBeginsAtOnceAndTheOthersApart() {
    var handshakes = Handshakes<Probe>()
    let (a, b, c) = (Probe(), Probe(), Probe())
    for probe in [a, b, c] { handshakes.add(probe) }
    #expect(handshakes.next(at: start) === a)
    #expect(handshakes.next(at: start) == nil)
    #expect(handshakes.due == start + apart)
    #expect(handshakes.next(at: start + apart) === b)
    #expect(handshakes.due == start + apart + apart)
    // A loop that was held up does not make up for it: the next one is as far apart again.
    let late = start + .seconds(1)
    #expect(handshakes.next(at: late) === c)
    #expect(handshakes.due == nil)
  }

  @Test func whoComesLaterBeginsAtOnceWhenNoneHasBegunOfLate() {
    var handshakes = Handshakes<Probe>()
    let (a, b) = (Probe(), Probe())
    handshakes.add(a)
    #expect(handshakes.next(at: start) === a)
    handshakes.add(b)
    #expect(handshakes.next(at: start + .microseconds(1999)) == nil)
    #expect(handshakes.next(at: start + apart) === b)
  }

  @Test func whoHasEndedTakesNoTurn() {
    var handshakes = Handshakes<Probe>()
    let (a, b) = (Probe(), Probe())
    handshakes.add(a)
    handshakes.add(b)
    handshakes.remove(a)
    #expect(handshakes.next(at: start) === b)
    handshakes.remove(b)
    #expect(handshakes.next(at: start + .seconds(1)) == nil)
  }
}
