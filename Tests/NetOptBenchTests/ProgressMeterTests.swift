import NetOptBench
import NetOptCore
import Testing

@Suite struct ProgressMeterTests {
  private let start = MonotonicInstant(nanoseconds: 0)
  /// The progress of a warm block after `done` rounds.
  private func state(_ done: Int) -> BenchProgress {
    BenchProgress(.warm, done: done, planned: 80, remaining: .milliseconds(11_200))
  }

  @Test("the meter redraws a terminal at most every 100 ms")
  func redrawing() {
    var meter = ProgressMeter(.terminal, start: start)
    #expect(meter.update(state(1), at: start) == "\r\u{1b}[Kwarm 1/80 rounds, 12 s left")
    #expect(meter.update(state(2), at: start + .milliseconds(99)) == nil)
    #expect(meter.update(state(3), at: start + .milliseconds(100)) != nil)
  }

  @Test("clear erases the line of a terminal once, and only after an update")
  func erasedLine() {
    var meter = ProgressMeter(.terminal, start: start)
    #expect(meter.clear() == nil)
    _ = meter.update(state(1), at: start)
    #expect(meter.clear() == "\r\u{1b}[K")
    #expect(meter.clear() == nil)
  }

  @Test("the meter writes a line to a log at most every 10 s")
  func logLines() {
    var meter = ProgressMeter(.lines, start: start)
    #expect(meter.update(state(1), at: start + .milliseconds(9_999)) == nil)
    #expect(meter.update(state(2), at: start + .seconds(10)) == "warm 2/80 rounds, 12 s left\n")
    #expect(meter.update(state(3), at: start + .seconds(19)) == nil)
    #expect(meter.clear() == nil)
  }

  @Test("a silent meter writes nothing")
  func silence() {
    var meter = ProgressMeter(.silent, start: start)
    #expect(meter.update(state(1), at: start + .seconds(100)) == nil)
  }

  @Test("the progress line is shorter than the terminal is wide", arguments: [79, 40, 20, 3, 1])
  func narrowTerminal(columns: Int) throws {
    var meter = ProgressMeter(.terminal, start: start)
    let medians = (1...3).map {
      BenchProgress.Median(id: "2001:db8:1111:2222:3333:4444:5555:\($0)", microseconds: 20_000)
    }
    let state = BenchProgress(.warm, done: 1, planned: 80, remaining: .seconds(12), medians: medians)
    let drawn = meter.update(state, at: start, columns: columns)
    let text = try #require(drawn)
    #expect(text.hasPrefix("\r\u{1b}[K") && text.dropFirst("\r\u{1b}[K".count).count < columns)
  }
}
