package import FoundationEssentials
package import NetOptCore

/// Decides when a list is looked for again. It reads no clock: it is told what happened and when.
///
/// A list is looked for at the first start of a day, in UTC, and then as often as it says, give or take a tenth, so
/// that the clients that were started together do not come together. After a failure it is looked for after a minute, and
/// after each further one twice as late, at most six hours; a process that is started again waits for the rest of it.
package struct RefreshSchedule: Sendable {
  /// What one process leaves for the next.
  package struct Record: Hashable, Sendable {
    /// When the list was last looked for with success, newer or not.
    package var checked: Date?
    /// When it was last looked for.
    package var attempted: Date?
    /// How often in a row that had no success, also when nobody heard the end.
    package var failures: Int
    /// Until when the server wants to be left alone, if it said so.
    package var notBefore: Date?

    /// Makes a record; of nothing, without arguments.
    package init(
      checked: Date? = nil, attempted: Date? = nil, failures: Int = 0, notBefore: Date? = nil
    ) {
      self.checked = checked
      self.attempted = attempted
      self.failures = failures
      self.notBefore = notBefore
    }
  }

  private static let firstPause = Duration.seconds(60)
  private static let longestPause = Duration.seconds(6 * 3600)
  /// The longest that a server may ask to be left alone.
  private static let mostPatience = Duration.seconds(86_400)

  /// What the next process is to know.
  package private(set) var record: Record
  /// When the list is to be looked for.
  package private(set) var due: MonotonicInstant
  private var every: Duration
  private var random: SplitMix64

  /// Makes a schedule when a process starts.
  ///
  /// - Parameters:
  ///   - every: how often the list wants to be looked for; one of `EndpointList.Refresh.intervals`, or the nearest counts.
  ///   - record: what the last process left. One from the future is taken for none: the calendar was set back.
  ///   - now: the present moment.
  ///   - wall: the same moment by the calendar.
  ///   - seed: what jitter follows from. Give each process another one.
  package init(every: Duration, record: Record, now: MonotonicInstant, wall: Date, seed: UInt64) {
    random = SplitMix64(seed: seed)
    self.every = every.asRefreshInterval
    let isUsable = [record.checked, record.attempted].allSatisfy { $0.map { $0 <= wall } ?? true }
    self.record = isUsable ? record : Record()
    due = now
    guard isUsable else { return }
    if let attempted = record.attempted, record.failures > 0 || attempted > record.checked ?? .distantPast {
      // Also for an attempt of which nobody heard the end: whoever is started in a loop must not ask in a loop.
      due =
        now + max(.zero, Self.pause(after: max(record.failures, 1)) - Self.time(from: attempted, to: wall))
    } else if let checked = record.checked, Self.day(checked) == Self.day(wall) {
      due = now + max(.zero, jittered(self.every) - Self.time(from: checked, to: wall))
    }
    if let notBefore = record.notBefore {
      // What is further off was not said by the server: the calendar was set back.
      let rest = Self.time(from: wall, to: notBefore)
      if rest <= Self.mostPatience { due = max(due, now + rest) }
    }
  }

  /// Notes that the list is being looked for. It counts as a failure until it is found: whoever is always ended before
  /// the answer comes must ask less and less often too.
  package mutating func began(wall: Date) {
    record.attempted = wall
    record.failures = min(max(record.failures, 0), 999) + 1
  }

  /// Notes that the list was found, newer or not.
  package mutating func succeeded(at now: MonotonicInstant, wall: Date) {
    record = Record(checked: wall, attempted: record.attempted)
    due = now + jittered(every)
  }

  /// Notes that the list, which was being looked for, was not found, or was no good.
  ///
  /// - Parameters:
  ///   - now: the present moment.
  ///   - wall: the same moment by the calendar.
  ///   - patience: how long the server asks to be left alone (RFC 9110, section 10.2.3), if it does.
  package mutating func failed(at now: MonotonicInstant, wall: Date, patience: Duration? = nil) {
    let patience = patience.map { min(max($0, .zero), Self.mostPatience) }
    record.notBefore = patience.map { wall + Double($0.nanoseconds) / 1e9 }
    // Only ever later, so that those who failed together do not come back together.
    let pause = Self.pause(after: max(record.failures, 1))
    let drawn = pause + .nanoseconds(Int64(random.below(UInt64(pause.nanoseconds / 2 + 1))))
    due = now + max(drawn, patience ?? .zero)
  }

  /// Follows a list that wants to be looked for at other intervals.
  package mutating func follow(every: Duration, at now: MonotonicInstant) {
    let every = every.asRefreshInterval
    guard every != self.every else { return }
    self.every = every
    if record.failures == 0 { due = min(due, now + jittered(every)) }
  }

  /// A time that is longer or shorter by at most a tenth.
  private mutating func jittered(_ time: Duration) -> Duration {
    let tenth = time.nanoseconds / 10
    return time + .nanoseconds(Int64(random.below(UInt64(2 * tenth + 1))) - tenth)
  }

  private static func pause(after failures: Int) -> Duration {
    min(firstPause * (1 << min(failures - 1, 20)), longestPause)
  }

  private static func time(from start: Date, to end: Date) -> Duration {
    let seconds = end.timeIntervalSince(start)
    // A date that is no number comes after none.
    return seconds > 0 ? .seconds(min(seconds, 1e9)) : .zero
  }

  /// The number of the day, in UTC. No whole number: dates may lie further off than one counts.
  private static func day(_ date: Date) -> Double { (date.timeIntervalSince1970 / 86_400).rounded(.down) }
}
