import NetOptCore
import NetOptTestSupport
import Testing

@Suite struct ManualTimeSourceTests {
  @Test("the clock moves by the time that it is advanced") func advances() {
    let clock = ManualTimeSource(at: MonotonicInstant(nanoseconds: 5))
    #expect(clock.now().nanoseconds == 5)
    clock.advance(by: .nanoseconds(7))
    #expect(clock.now().nanoseconds == 12)
  }

  @Test("the clock wakes the sleepers that are due, and a cancelled sleeper leaves")
  func wakesDueSleepers() async throws {
    let clock = ManualTimeSource()
    let woken = EventRecorder<Int>()
    let start = clock.now()
    let tasks = [10, 20, 30].map { milliseconds in
      Task {
        try await clock.sleep(until: start + .milliseconds(milliseconds))
        woken.record(milliseconds)
      }
    }
    try await wait(for: "three sleepers") { clock.sleepers == 3 }
    clock.advance(by: .milliseconds(19))
    try await woken.wait(for: "the first") { $0 == [10] }
    clock.advance(by: .milliseconds(1))
    try await woken.wait(for: "the second") { $0 == [10, 20] }
    #expect(clock.sleepers == 1)
    tasks[2].cancel()
    await #expect(throws: CancellationError.self) { try await tasks[2].value }
    #expect(clock.sleepers == 0)
  }

  @Test("a sleep until now returns at once") func sleepUntilNow() async throws {
    let clock = ManualTimeSource()
    try await clock.sleep(until: clock.now())
    #expect(clock.sleepers == 0)
  }
}
