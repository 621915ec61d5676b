import Glibc

/// A time on the monotonic clock (`clock_gettime(2)`, `CLOCK_MONOTONIC`), in nanoseconds since an unspecified
/// start.
///
/// The operations are `@inlinable`, because other modules call them, about a hundred times for each request.
/// Without `@inlinable`, the compiler inlines only public functions in other modules.
@usableFromInline
package struct MonotonicInstant: Hashable, Comparable, Sendable {
  /// The nanoseconds since the start of the clock.
  @usableFromInline package var nanoseconds: Int64

  /// Creates a time from nanoseconds since the start of the clock.
  @inlinable package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  /// Whether the first time is earlier than the second.
  @inlinable package static func < (a: Self, b: Self) -> Bool { a.nanoseconds < b.nanoseconds }

  /// Returns the time that is `duration` later. A result out of range becomes the last or first time.
  @inlinable package static func + (a: Self, duration: Duration) -> Self {
    Self(nanoseconds: a.nanoseconds.addingClamped(duration.nanoseconds))
  }

  /// Returns the nanoseconds from an earlier time to this time, clamped to the range of `Int64`. Cheaper than
  /// a `Duration`.
  @inlinable package func nanoseconds(since earlier: MonotonicInstant) -> Int64 {
    nanoseconds.subtractingClamped(earlier.nanoseconds)
  }

  /// Returns the duration from `b` to `a`.
  @inlinable package static func - (a: Self, b: Self) -> Duration {
    let (difference, overflow) = a.nanoseconds.subtractingReportingOverflow(b.nanoseconds)
    return overflow ? .nanoseconds(a.nanoseconds) - .nanoseconds(b.nanoseconds) : .nanoseconds(difference)
  }
}

extension Duration {
  /// The length of the whole duration in nanoseconds, not only of its fraction of a second. Rounded toward
  /// zero and clamped to the range of `Int64`.
  public var nanoseconds: Int64 {
    let attoseconds = attoseconds
    // A 128-bit division calls a function that divides bit by bit. Durations of up to an hour need only a
    // 64-bit division, because 10^9 is 2^9 x 1953125.
    if attoseconds >= 0, let scaled = Int64(exactly: attoseconds >> 9) { return scaled / 1_953_125 }
    return Int64(clamping: attoseconds / 1_000_000_000)
  }

  /// The length of the whole duration in microseconds, rounded toward zero.
  public var microseconds: Int64 { nanoseconds / 1000 }

  /// The length of the whole duration in milliseconds, with a fraction.
  public var milliseconds: Double { Double(nanoseconds) / 1e6 }
}

/// A source of the current time. Policies read no clock; they get times as arguments. The code that asks the
/// policies reads a time source. A test can replace the time source with a clock that the test sets.
package protocol TimeSource: Sendable {
  /// Returns the current time. Safe from any thread.
  func now() -> MonotonicInstant
}

/// The system's monotonic clock.
package struct SystemTimeSource: TimeSource {
  /// Creates a time source.
  package init() {}

  /// Returns the current time.
  package func now() -> MonotonicInstant {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return MonotonicInstant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }
}
