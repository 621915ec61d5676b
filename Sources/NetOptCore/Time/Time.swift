import Glibc

/// A moment on the monotonic clock (`clock_gettime(2)`, `CLOCK_MONOTONIC`), in nanoseconds since an unspecified start.
///
/// Its operations are marked to be inlined: the compiler does that by itself across modules for what is public alone, and each request has a
/// hundred of them.
@usableFromInline
package struct MonotonicInstant: Hashable, Comparable, Sendable {
  /// Nanoseconds since the clock's start.
  @usableFromInline package var nanoseconds: Int64

  /// Makes a moment from nanoseconds since the clock's start.
  @inlinable package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  /// The earlier of two moments is less.
  @inlinable package static func < (a: Self, b: Self) -> Bool { a.nanoseconds < b.nanoseconds }

  /// The moment that lies `duration` later, saturating.
  @inlinable package static func + (a: Self, duration: Duration) -> Self {
    Self(nanoseconds: a.nanoseconds.addingClamped(duration.nanoseconds))
  }

  /// The time from an earlier moment to this one, saturating, where a `Duration` would be a burden.
  @inlinable package func nanoseconds(since earlier: MonotonicInstant) -> Int64 {
    nanoseconds.subtractingClamped(earlier.nanoseconds)
  }

  /// The time from `b` to `a`.
  @inlinable package static func - (a: Self, b: Self) -> Duration {
    let (difference, overflow) = a.nanoseconds.subtractingReportingOverflow(b.nanoseconds)
    return overflow ? .nanoseconds(a.nanoseconds) - .nanoseconds(b.nanoseconds) : .nanoseconds(difference)
  }
}

extension Duration {
  /// The whole duration in nanoseconds, rounded towards zero, saturating.
  public var nanoseconds: Int64 {
    let attoseconds = attoseconds
    // A division of 128 bits is a call of a function that divides bit by bit. Up to an hour does without: 10^9 is 2^9 x 1953125.
    if attoseconds >= 0, let scaled = Int64(exactly: attoseconds >> 9) { return scaled / 1_953_125 }
    return Int64(clamping: attoseconds / 1_000_000_000)
  }

  /// The whole duration in microseconds, rounded towards zero.
  public var microseconds: Int64 { nanoseconds / 1000 }

  /// The duration in milliseconds.
  public var milliseconds: Double { Double(nanoseconds) / 1e6 }
}

/// Where the time comes from. Policies take moments as arguments; what performs them asks a time source, so that
/// a test can put a clock of its own in its place.
package protocol TimeSource: Sendable {
  /// The present moment. Safe from any thread.
  func now() -> MonotonicInstant
}

/// The system's monotonic clock.
package struct SystemTimeSource: TimeSource {
  /// Makes a time source.
  package init() {}

  /// The present moment.
  package func now() -> MonotonicInstant {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return MonotonicInstant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }
}
