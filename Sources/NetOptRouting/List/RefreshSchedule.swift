package import FoundationEssentials
package import NetOptCore

/// Decides when the client looks for a newer list. It reads no clock: callers pass events with their moments.
///
/// After each success, the client looks again when the interval that the list names has passed. Jitter makes
/// the interval longer or shorter by up to a tenth, so that clients that were started together do not look at
/// the same time. When a process starts, the client does not wait for the rest of the interval if the last
/// success was on an earlier UTC day: it looks at once. It also looks at once if it never found the list.
///
/// After a failure, the client looks again after one minute. Each further failure doubles the wait, up to six
/// hours. Jitter adds up to half of the wait. A longer `Retry-After` replaces the wait, and jitter adds up to a
/// tenth of it. When a new process starts during such a wait, it waits for the rest of the wait, without this
/// jitter.
package struct RefreshSchedule: Sendable {
  /// What a process saves for the next process (`ListStore`). All dates are calendar dates.
  package struct Record: Hashable, Sendable {
    /// When the client last found the list, whether or not the list was newer; `nil` if it never did.
    package var checked: Date?
    /// When the client last began to look for the list; `nil` if it never did.
    package var attempted: Date?
    /// The number of failures in a row. An attempt counts as a failure until it succeeds.
    package var failures: Int
    /// The end of the time for which the server asked not to be contacted (`Retry-After`); `nil` if it did
    /// not ask.
    package var notBefore: Date?

    /// Makes a record; without arguments, an empty one.
    package init(
      checked: Date? = nil, attempted: Date? = nil, failures: Int = 0, notBefore: Date? = nil
    ) {
      self.checked = checked
      self.attempted = attempted
      self.failures = failures
      self.notBefore = notBefore
    }
  }

  /// The wait after the first failure, before jitter.
  private static let firstPause = Duration.seconds(60)
  /// The longest wait after a failure, before jitter.
  private static let longestPause = Duration.seconds(6 * 3600)
  /// The longest time for which `Retry-After` delays the next attempt: one day. A longer `Retry-After` counts
  /// as this time.
  private static let longestRetryAfter = Duration.seconds(86_400)

  /// The record for the next process.
  package private(set) var record: Record
  /// When the client must look for the list next, by the monotonic clock.
  package private(set) var due: MonotonicInstant
  /// The time from a success to the next attempt, before jitter. Within `EndpointList.Refresh.intervals`.
  private var every: Duration
  /// The source of the jitter.
  private var random: SplitMix64

  /// Makes a schedule at the start of a process.
  ///
  /// - Parameters:
  ///   - every: how often the list asks the client to look. A value outside of
  ///     `EndpointList.Refresh.intervals` becomes the nearest allowed one.
  ///   - record: the record of the last process. A record with a `checked` or `attempted` after `wall` is
  ///     ignored, because the calendar was set back.
  ///   - now: the present moment.
  ///   - wall: the same moment as a calendar date.
  ///   - seed: the seed of the jitter. Give each process a different seed.
  package init(every: Duration, record: Record, now: MonotonicInstant, wall: Date, seed: UInt64) {
    random = SplitMix64(seed: seed)
    self.every = every.asRefreshInterval
    let isUsable = [record.checked, record.attempted].allSatisfy { $0.map { $0 <= wall } ?? true }
    self.record = isUsable ? record : Record()
    due = now
    guard isUsable else { return }
    if let attempted = record.attempted, record.failures > 0 || attempted > record.checked ?? .distantPast {
      // This includes an attempt that a process began and did not end: a process that is restarted in a loop
      // must not ask in a loop.
      due =
        now + max(.zero, Self.pause(after: max(record.failures, 1)) - Self.time(from: attempted, to: wall))
    } else if let checked = record.checked, Self.day(checked) == Self.day(wall) {
      due = now + max(.zero, jittered(self.every) - Self.time(from: checked, to: wall))
    }
    if let notBefore = record.notBefore {
      // A longer rest means that the calendar was set back: `failed` records at most `longestRetryAfter`.
      let rest = Self.time(from: wall, to: notBefore)
      if rest <= Self.longestRetryAfter { due = max(due, now + rest) }
    }
  }

  /// Notes that the client begins to look for the list. The attempt counts as a failure until it succeeds. So
  /// a process that is restarted again and again before the response comes also asks less and less often.
  package mutating func began(wall: Date) {
    record.attempted = wall
    record.failures = min(max(record.failures, 0), 999) + 1
  }

  /// Notes that the client found the list, whether or not it was newer.
  package mutating func succeeded(at now: MonotonicInstant, wall: Date) {
    record = Record(checked: wall, attempted: record.attempted)
    due = now + jittered(every)
  }

  /// Notes that the client did not find the list, or that the list was invalid.
  ///
  /// - Parameters:
  ///   - now: the present moment.
  ///   - wall: the same moment as a calendar date.
  ///   - retryAfter: how long the server asks not to be contacted (RFC 9110, section 10.2.3), if it does.
  package mutating func failed(at now: MonotonicInstant, wall: Date, retryAfter: Duration? = nil) {
    let retryAfter = retryAfter.map { min(max($0, .zero), Self.longestRetryAfter) }
    record.notBefore = retryAfter.map { wall + Double($0.nanoseconds) / 1e9 }
    // Jitter spreads clients that failed together. It never shortens the wait.
    let pause = Self.pause(after: max(record.failures, 1))
    let drawn = pause + jitter(upTo: pause.nanoseconds / 2)
    due = now + max(drawn, retryAfter.map { $0 + jitter(upTo: $0.nanoseconds / 10) } ?? .zero)
  }

  /// Adopts the interval of a new list. A shorter interval brings the next attempt forward, unless the last
  /// attempt failed. A longer interval counts from the next success on.
  package mutating func follow(every: Duration, at now: MonotonicInstant) {
    let every = every.asRefreshInterval
    guard every != self.every else { return }
    self.every = every
    if record.failures == 0 { due = min(due, now + jittered(every)) }
  }

  /// The time, made longer or shorter by up to a tenth.
  private mutating func jittered(_ time: Duration) -> Duration {
    let tenth = time.nanoseconds / 10
    return time + jitter(upTo: 2 * tenth) - .nanoseconds(tenth)
  }

  /// A random time from zero to so many nanoseconds.
  private mutating func jitter(upTo nanoseconds: Int64) -> Duration {
    .nanoseconds(Int64(random.below(UInt64(nanoseconds + 1))))
  }

  /// The wait after a number of failures in a row, before jitter.
  private static func pause(after failures: Int) -> Duration {
    min(firstPause * (1 << min(failures - 1, 20)), longestPause)
  }

  /// The time between two dates; zero when `end` is not later than `start`.
  private static func time(from start: Date, to end: Date) -> Duration {
    let seconds = end.timeIntervalSince(start)
    // A date that is not a number gives zero.
    return seconds > 0 ? .seconds(min(seconds, 1e9)) : .zero
  }

  /// The number of the day in UTC. A `Double`, because a date may be beyond the range of integers.
  private static func day(_ date: Date) -> Double { (date.timeIntervalSince1970 / 86_400).rounded(.down) }
}
