import NetOptCore
import Testing

@Suite struct TimeTests {
  @Test(
    "conversion to 64-bit nanoseconds and microseconds truncates and saturates",
    arguments: [
      (Duration.zero, 0), (.nanoseconds(-7), -7), (.seconds(1), 1_000_000_000),
      (.milliseconds(-1500), -1_500_000_000),
      (.nanoseconds(Int64.max), .max), (.nanoseconds(Int64.min), .min),
      (Duration(secondsComponent: 1, attosecondsComponent: 999_999_999), 1_000_000_000),
      (Duration(secondsComponent: 1, attosecondsComponent: 1_000_000_000), 1_000_000_001),
      (Duration(secondsComponent: -1, attosecondsComponent: -999_999_999), -1_000_000_000),
      // Both sides of the limit up to which the conversion divides in 64 bits.
      (.seconds(4722), 4_722_000_000_000), (.seconds(4723), 4_723_000_000_000),
      (.nanoseconds(Int64.max) + .nanoseconds(1), .max), (.nanoseconds(Int64.min) - .nanoseconds(1), .min),
      (.seconds(Int64.max), .max), (.seconds(Int64.min), .min), (.seconds(Int64.max) * 8, .max),
      (.seconds(Int64.min) * 8, .min), (Duration(secondsComponent: 0, attosecondsComponent: 999_999_999), 0),
      (Duration(secondsComponent: 0, attosecondsComponent: -1_999_999_999), -1),
    ] as [(Duration, Int64)])
  func saturation(_ duration: Duration, _ nanoseconds: Int64) {
    #expect(duration.nanoseconds == nanoseconds)
    #expect(duration.microseconds == nanoseconds / 1000)
  }

  @Test("a duration gives fractional milliseconds and whole microseconds")
  func units() {
    #expect(Duration.microseconds(1500).milliseconds == 1.5)
    #expect(Duration.nanoseconds(1999).microseconds == 1)
  }

  @Test(
    "an instant plus a duration saturates",
    arguments: [
      (0, Duration.seconds(1), 1_000_000_000), (5, .nanoseconds(-7), -2), (.max, .nanoseconds(1), .max),
      (.max, .nanoseconds(-1), .max - 1), (0, .seconds(Int64.max), .max), (.min, .nanoseconds(-1), .min),
      (-1, .seconds(Int64.min), .min), (.min, .seconds(Int64.max), -1),
    ] as [(Int64, Duration, Int64)])
  func sums(_ start: Int64, _ duration: Duration, _ end: Int64) {
    #expect(MonotonicInstant(nanoseconds: start) + duration == MonotonicInstant(nanoseconds: end))
  }

  @Test("the difference of two instants does not overflow")
  func differences() {
    let (first, last) = (MonotonicInstant(nanoseconds: .min), MonotonicInstant(nanoseconds: .max))
    #expect(last - first == .nanoseconds(Int64.max) - .nanoseconds(Int64.min))
    #expect((last - first).nanoseconds == .max)
    #expect((first - last).nanoseconds == .min)
    #expect(MonotonicInstant(nanoseconds: 5) - MonotonicInstant(nanoseconds: 7) == .nanoseconds(-2))
    #expect(first < last && !(last < first) && !(first < first))
  }

  @Test("the system clock never goes back")
  func systemClock() {
    let source = SystemTimeSource()
    let moments = (0..<1000).map { _ in source.now() }
    #expect(zip(moments, moments.dropFirst()).allSatisfy { $0 <= $1 })
    #expect(moments.allSatisfy { $0.nanoseconds > 0 })
  }
}
