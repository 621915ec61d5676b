import Glibc

/// The system clock in milliseconds, the unit of the times in cache entries. The clock can be set back.
package enum WallClock {
  /// The current date in milliseconds since 1970.
  package static func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }
}
