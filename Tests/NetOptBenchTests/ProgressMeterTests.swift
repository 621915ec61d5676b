import NetOptBench
import NetOptCore
import Testing

@Suite struct ProgressMeterTests {
  private let start = MonotonicInstant(nanoseconds: 0)
  private func state(_ done: Int) -> BenchProgress {
    BenchProgress(.warm, done: done, planned: 80, remaining: .milliseconds(11_200))
  }

  @Test func aTerminalIsDrawnTenTimesASecondAtMost() {
    var meter = ProgressMeter(.terminal, start: start)
    #expect(meter.update(state(1), at: start) == "\r\u{1b}[Kwarm 1/80 rounds, 12 s left")
    #expect(meter.update(state(2), at: start + .milliseconds(99)) == nil)
    #expect(meter.update(state(3), at: start + .milliseconds(100)) != nil)
  }

  @Test func aTerminalIsLeftClean() {
    var meter = ProgressMeter(.terminal, start: start)
    #expect(meter.clear() == nil)
    _ = meter.update(state(1), at: start)
    #expect(meter.clear() == "\r\u{1b}[K")
    #expect(meter.clear() == nil)
  }

  @Test func aLogGetsALineEveryTenSeconds() {
    var meter = ProgressMeter(.lines, start: start)
    #expect(meter.update(state(1), at: start + .milliseconds(9_999)) == nil)
    #expect(meter.update(state(2), at: start + .seconds(10)) == "warm 2/80 rounds, 12 s left\n")
    #expect(meter.update(state(3), at: start + .seconds(19)) == nil)
    #expect(meter.clear() == nil)
  }

  @Test func silenceIsSilent() {
    var meter = ProgressMeter(.silent, start: start)
    #expect(meter.update(state(1), at: start + .seconds(100)) == nil)
  }
}
