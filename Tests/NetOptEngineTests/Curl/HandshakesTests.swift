import NetOptCore
import Testing

@testable import NetOptEngine

/// The order and the moments in which waiting probes begin TLS.
@Suite struct HandshakesTests {
  /// A probe. `Handshakes` only compares its identity.
  private final class Probe {}

  private let start = MonotonicInstant(nanoseconds: 1_000_000_000)

  /// Returns the next probe that may begin TLS at `now`; `nil` if none may.
  ///
  /// - Parameter stale: a probe that can no longer begin TLS; `nil` if all waiting probes can.
  private func next(
    _ handshakes: inout Handshakes<Probe>, at now: MonotonicInstant, except stale: Probe? = nil
  ) -> Probe? {
    handshakes.next(at: now) { $0 !== stale }
  }

  /// The pause between the beginnings of two handshakes.
  private var apart: Duration { Handshakes<Probe>.apart }
  /// The longest time for which the first probe delays the other probes.
  private var headStart: Duration { Handshakes<Probe>.headStart }

  @Test("the first probe has a head start of 10 ms, and the others begin 2 ms apart")
  func headStarts() {
    var handshakes = Handshakes<Probe>()
    let (a, b, c) = (Probe(), Probe(), Probe())
    for probe in [a, b, c] { handshakes.add(probe, at: start, keepsConnection: true) }
    #expect(next(&handshakes, at: start) === a)
    #expect(next(&handshakes, at: start) == nil)
    // The first probe does not end. It delays the other probes by one head start in total.
    #expect(handshakes.due == start + headStart)
    #expect(next(&handshakes, at: start + headStart + .microseconds(-1)) == nil)
    #expect(next(&handshakes, at: start + headStart) === b)
    #expect(handshakes.due == start + headStart + apart)
    #expect(next(&handshakes, at: start + headStart + apart) === c)
    #expect(handshakes.due == nil)
  }

  /// When the first probe ends, the request that waited for its connection goes out. The other probes begin
  /// after that, with the pause `apart` before each of them. The end of another probe does not shorten the
  /// pause.
  @Test("the next probe begins 2 ms after the end of the first, and a late loop does not catch up")
  func endOfHeadStart() {
    var handshakes = Handshakes<Probe>()
    let (a, b, c, d) = (Probe(), Probe(), Probe(), Probe())
    for probe in [a, b, c, d] { handshakes.add(probe, at: start, keepsConnection: true) }
    #expect(next(&handshakes, at: start) === a)
    let ready = start + .milliseconds(3)
    handshakes.ended(a, at: ready)
    #expect(handshakes.due == ready + apart)
    #expect(next(&handshakes, at: ready + apart) === b)
    #expect(handshakes.due == ready + apart + apart)
    handshakes.ended(b, at: ready + apart)
    #expect(handshakes.due == ready + apart + apart)
    // The event loop was busy for so long that two probes are due. There is still a pause between them.
    let late = ready + apart * 4
    #expect(next(&handshakes, at: late) === c)
    #expect(next(&handshakes, at: late) == nil)
    #expect(next(&handshakes, at: late + apart) === d)
  }

  @Test("a probe that comes after a quiet time begins at once with a head start")
  func laterProbes() {
    var handshakes = Handshakes<Probe>()
    let (a, b, c, d) = (Probe(), Probe(), Probe(), Probe())
    handshakes.add(a, at: start, keepsConnection: true)
    #expect(next(&handshakes, at: start) === a)
    handshakes.add(b, at: start + apart, keepsConnection: true)
    #expect(next(&handshakes, at: start + apart) == nil)
    #expect(next(&handshakes, at: start + headStart) === b)
    // `c` is the first of the next group of probes, and gets a head start.
    let later = start + headStart * 3
    for probe in [c, d] { handshakes.add(probe, at: later, keepsConnection: true) }
    #expect(next(&handshakes, at: later) === c)
    #expect(handshakes.due == later + headStart)
  }

  @Test("a probe that ends before it begins does not end the head start of the first probe")
  func endedWhileWaiting() {
    var handshakes = Handshakes<Probe>()
    let (a, b, c) = (Probe(), Probe(), Probe())
    for probe in [a, b, c] { handshakes.add(probe, at: start, keepsConnection: true) }
    #expect(next(&handshakes, at: start) === a)
    handshakes.ended(b, at: start + apart)
    #expect(!handshakes.contains(b))
    #expect(handshakes.due == start + headStart)
    #expect(next(&handshakes, at: start + headStart) === c)
  }

  @Test("a removed probe does not begin, and a probe that has begun cannot be removed")
  func removedProbes() {
    var handshakes = Handshakes<Probe>()
    let (a, b) = (Probe(), Probe())
    handshakes.add(a, at: start, keepsConnection: true)
    handshakes.add(b, at: start, keepsConnection: true)
    #expect(handshakes.remove { $0 === a } === a)
    #expect(next(&handshakes, at: start) === b)
    #expect(handshakes.remove { $0 === b } == nil)
    #expect(next(&handshakes, at: start + .seconds(1)) == nil)
  }

  @Test("a probe that can no longer begin is dropped, and the next probe begins instead")
  func staleProbe() {
    var handshakes = Handshakes<Probe>()
    let (stale, b) = (Probe(), Probe())
    handshakes.add(stale, at: start, keepsConnection: true)
    handshakes.add(b, at: start, keepsConnection: true)
    #expect(next(&handshakes, at: start, except: stale) === b)
    #expect(!handshakes.contains(stale))
  }

  @Test("a probe that a request waits for begins at once and ends the head start of the first")
  func hurriedProbe() {
    var handshakes = Handshakes<Probe>()
    let (a, b, c) = (Probe(), Probe(), Probe())
    for probe in [a, b, c] { handshakes.add(probe, at: start, keepsConnection: true) }
    #expect(next(&handshakes, at: start) === a)
    #expect(handshakes.prioritize { $0 === c })
    #expect(!handshakes.prioritize { $0 === a })
    #expect(next(&handshakes, at: start) === c)
    #expect(next(&handshakes, at: start) == nil)
    // The head start of `a` has ended.
    #expect(next(&handshakes, at: start + apart) === b)
  }

  /// No request can use the connection of a background probe, because this connection is not kept. So the
  /// background probe gets no head start, and the next probe whose connection is kept gets one.
  @Test("a probe whose connection is not kept has no head start, and the next probe has one")
  func backgroundProbe() {
    var handshakes = Handshakes<Probe>()
    let (look, a, b) = (Probe(), Probe(), Probe())
    handshakes.add(look, at: start, keepsConnection: false)
    #expect(next(&handshakes, at: start) === look)
    for probe in [a, b] { handshakes.add(probe, at: start + apart, keepsConnection: true) }
    #expect(next(&handshakes, at: start + apart) === a)
    #expect(handshakes.due == start + apart + headStart)
  }
}
