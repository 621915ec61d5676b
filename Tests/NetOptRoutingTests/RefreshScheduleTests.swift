import FoundationEssentials
import NetOptCore
import Testing

@testable import NetOptRouting

@Suite struct RefreshScheduleTests {
  /// The calendar date at which the process starts: 20 November 2026, 10:00 UTC.
  private static let wall = Date(timeIntervalSince1970: 1_795_168_800)
  private static let day = Duration.seconds(86_400)

  /// The schedule of a process that starts at `wall`. On the monotonic clock this is the moment `.at(0)`.
  /// `record` is the record of the last process; by default an empty one.
  private func schedule(
    every: Duration = day, _ record: RefreshSchedule.Record = .init(), seed: UInt64 = 1
  ) -> RefreshSchedule {
    RefreshSchedule(every: every, record: record, now: .at(0), wall: Self.wall, seed: seed)
  }

  /// The calendar date this many seconds before `wall`.
  private func before(_ seconds: Double) -> Date { Self.wall - seconds }

  @Test("the first start of a UTC day looks for the list at once")
  func firstStartOfDay() {
    #expect(schedule().due == .at(0))
    // At 23:00 on the day before, eleven hours ago.
    #expect(schedule(.init(checked: before(39_600), attempted: before(39_600))).due == .at(0))
    #expect(schedule(.init(checked: before(30 * 86_400), attempted: before(30 * 86_400))).due == .at(0))
  }

  @Test("a later start of the day waits for the rest of the interval, which varies by a tenth")
  func laterStartOfDay() {
    for seed in 0..<200 as Range<UInt64> {
      let due = schedule(.init(checked: before(3600), attempted: before(3600)), seed: seed).due
      #expect(due >= .at(86_400 * 0.9 - 3600) && due <= .at(86_400 * 1.1 - 3600))
      // With an interval of 60 s, the look is overdue.
      #expect(
        schedule(every: .seconds(60), .init(checked: before(3600), attempted: before(3600)), seed: seed).due
          == .at(0))
    }
  }

  @Test("after a success, the next look comes after the interval, which varies by a tenth")
  func interval() {
    var seen: Set<MonotonicInstant> = []
    for seed in 0..<200 as Range<UInt64> {
      var schedule = schedule(every: .seconds(3600), seed: seed)
      schedule.began(wall: Self.wall)
      schedule.succeeded(at: .at(5), wall: Self.wall + 5)
      #expect(schedule.due >= .at(5 + 3240) && schedule.due <= .at(5 + 3960))
      #expect(schedule.record == .init(checked: Self.wall + 5, attempted: Self.wall))
      seen.insert(schedule.due)
    }
    #expect(seen.count > 190)
  }

  @Test("the wait after a failure doubles from 60 s to 6 hours, and a success resets it")
  func waitsAfterFailures() {
    var schedule = schedule()
    var now = MonotonicInstant.at(0)
    for failures in 1...12 {
      schedule.began(wall: Self.wall)
      schedule.failed(at: now, wall: Self.wall)
      let least = min(60 * pow2(failures - 1), 21_600)
      #expect(schedule.due >= now + .seconds(least) && schedule.due <= now + .seconds(1.5 * least))
      #expect(schedule.record.failures == failures)
      now = schedule.due
    }
    schedule.succeeded(at: now, wall: Self.wall)
    #expect(schedule.record.failures == 0)
    schedule.began(wall: Self.wall)
    schedule.failed(at: now, wall: Self.wall)
    #expect(schedule.due <= now + .seconds(90))
  }

  @Test("a server may ask for a longer wait, up to a day")
  func retryAfter() {
    var schedule = schedule()
    schedule.began(wall: Self.wall)
    schedule.failed(at: .at(0), wall: Self.wall, retryAfter: .seconds(7200))
    #expect(schedule.due >= .at(7200) && schedule.due <= .at(7920))
    schedule.began(wall: Self.wall)
    schedule.failed(at: .at(0), wall: Self.wall, retryAfter: .seconds(1))
    #expect(schedule.due >= .at(120))
    schedule.failed(at: .at(0), wall: Self.wall, retryAfter: .seconds(1e9))
    #expect(schedule.due >= .at(86_400) && schedule.due <= .at(95_040))
    schedule.failed(at: .at(0), wall: Self.wall, retryAfter: .seconds(-5))
    #expect(schedule.due >= .at(120))
  }

  @Test("clients that got the same Retry-After do not come back at the same time")
  func spreadRetryAfter() {
    let dues = (0..<100).map { seed in
      var schedule = RefreshSchedule(
        every: .seconds(3600), record: .init(), now: .at(0), wall: Self.wall, seed: UInt64(seed))
      schedule.began(wall: Self.wall)
      schedule.failed(at: .at(0), wall: Self.wall, retryAfter: .seconds(7200))
      return schedule.due
    }
    #expect(Set(dues).count == 100)
    #expect(dues.contains { $0 < .at(7300) } && dues.contains { $0 > .at(7800) })
  }

  @Test("a restart keeps the wait that the server asked for")
  func patienceAfterRestart() {
    var first = schedule()
    first.began(wall: before(600))
    first.failed(at: .at(0), wall: before(600), retryAfter: .seconds(7200))
    #expect(first.record.notBefore == Self.wall + 6600)
    #expect(schedule(first.record).due == .at(6600))
    // A success clears the wait. A record with a longer wait than a server may ask for, or with a wait that
    // is over, delays nothing.
    first.succeeded(at: .at(0), wall: Self.wall)
    #expect(first.record.notBefore == nil)
    #expect(schedule(.init(notBefore: Self.wall + 90_000)).due == .at(0))
    #expect(schedule(.init(notBefore: before(1))).due == .at(0))
  }

  @Test("the wait doubles with each process that ends during its attempt")
  func unfinishedAttempts() {
    var record = RefreshSchedule.Record()
    for least in [60.0, 120, 240, 480] {
      var schedule = schedule(record)
      schedule.began(wall: Self.wall)
      record = schedule.record
      #expect(self.schedule(record).due == .at(least))
    }
  }

  @Test("an interval outside of the allowed range becomes the nearest allowed one")
  func intervalLimits() throws {
    let url = try HTTPURL("https://a.example/list.json")
    // The interval that the list names, and the shortest time in seconds from a success to the next look: the
    // nearest allowed interval, less a tenth.
    for (every, least) in [
      (.zero, 54), (.seconds(-1), 54), (.seconds(Int64.min), 54), (.seconds(Int64.max), 0.9 * 31_536_000),
    ] as [(Duration, Double)] {
      #expect(EndpointList.Refresh.intervals.contains(EndpointList.Refresh(url: url, every: every).every))
      var schedule = schedule(every: every)
      schedule.began(wall: Self.wall)
      schedule.succeeded(at: .at(0), wall: Self.wall)
      #expect(schedule.due >= .at(least) && schedule.due <= .at(least / 0.9 * 1.1))
      schedule.follow(every: .seconds(-1), at: .at(0))
      #expect(schedule.due <= .at(least / 0.9 * 1.1))
    }
  }

  @Test("a process that is restarted in a loop does not look for the list in a loop")
  func restartLoop() {
    // The third failure in a row was 10 s ago. The wait after it is 240 s.
    let failed = RefreshSchedule.Record(checked: before(90_000), attempted: before(10), failures: 3)
    #expect(schedule(failed).due == .at(230))
    // The last process ended while it looked for the list.
    #expect(schedule(.init(attempted: before(10))).due == .at(50))
    #expect(schedule(.init(checked: before(90_000), attempted: before(10))).due == .at(50))
    #expect(schedule(.init(checked: before(90_000), attempted: before(61))).due == .at(0))
  }

  @Test("the schedule ignores a record from the future, because the calendar was set back")
  func calendarSetBack() {
    #expect(schedule(.init(checked: Self.wall + 1e6, attempted: Self.wall + 1e6)).due == .at(0))
    #expect(schedule(.init(checked: before(5), attempted: Self.wall + 1e6, failures: 9)).due == .at(0))
  }

  @Test("a shorter interval brings the next look forward, except after a failure")
  func newInterval() {
    var schedule = schedule(.init(checked: before(60), attempted: before(60)))
    schedule.follow(every: .seconds(600), at: .at(0))
    #expect(schedule.due <= .at(660))
    let due = schedule.due
    schedule.follow(every: .seconds(600), at: .at(100))
    #expect(schedule.due == due)
    schedule.began(wall: Self.wall)
    schedule.failed(at: .at(100), wall: Self.wall, retryAfter: .seconds(5000))
    let wait = schedule.due
    schedule.follow(every: .seconds(60), at: .at(100))
    #expect(schedule.due == wait && wait >= .at(5100))
  }

  private func pow2(_ exponent: Int) -> Double { Double(1 << exponent) }
}
