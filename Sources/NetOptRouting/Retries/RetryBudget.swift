package import NetOptCore

/// Limits how many retries and hedges a client sends: one for every five calls of the last 10 s, plus ten per
/// second.
///
/// The first part lets a busy client continue when an endpoint dies, and prevents all clients together from
/// doubling the load of a failing service. The second part lets a client with few calls retry at all. In any
/// period of T seconds, there are at most 0.2 retries for each call of that period and the 10 s before it,
/// plus 10 · (T + 1).
///
/// The budget is a value type and reads no clock: callers pass the present moment. A moment before the latest
/// one counts as the latest one.
package struct RetryBudget: Sendable {
  /// The number of calls that pay for a retry.
  static let callsPerRetry = 5
  /// How long a call counts.
  static let memory = Duration.seconds(10)
  /// The number of free retries per second. As many can be made at once.
  static let freePerSecond: Int64 = 10

  private static let slots = 10
  private static let slot = memory.nanoseconds / Int64(slots)
  private static let free = 1_000_000_000 / freePerSecond

  /// The calls in each tenth of `memory` that no retry has used.
  private var calls = InlineArray<10, Int>(repeating: 0)
  /// The current tenth, counted from the start of the clock.
  private var current: Int64
  private var currentIndex: Int
  private var currentEnds: Int64
  /// The free retries that are left, as the nanoseconds in which they were earned.
  private var credit: Int64
  private var creditedAt: Int64

  /// Makes an unused budget.
  package init(at now: MonotonicInstant) {
    let moment = Self.counted(now)
    current = moment / Self.slot
    currentIndex = Int(current % Int64(Self.slots))
    currentEnds = (current + 1) * Self.slot
    creditedAt = moment
    credit = Self.free * Self.freePerSecond
  }

  /// The moment in nanoseconds, limited to the range in which tenths can be counted.
  private static func counted(_ moment: MonotonicInstant) -> Int64 {
    min(max(moment.nanoseconds, 0), .max - slot)
  }

  /// Records that a call begins.
  package mutating func callBegins(at now: MonotonicInstant) {
    // Nearly every call of a busy client begins in the same tenth as the previous call.
    if now.nanoseconds >= currentEnds { advance(to: now) }
    calls[currentIndex] &+= 1
  }

  /// Takes the cost of a retry.
  ///
  /// - Returns: whether the budget was sufficient. Otherwise nothing is taken.
  package mutating func take(at now: MonotonicInstant) -> Bool {
    advance(to: now)
    earnCredit(until: now)
    // Free retries are used first: they renew themselves.
    if credit >= Self.free {
      credit -= Self.free
      return true
    }
    guard available >= Self.callsPerRetry else { return false }
    // The oldest calls pay first: they expire next.
    var rest = Self.callsPerRetry
    for age in (0..<Int64(Self.slots)).reversed() where current >= age {
      let index = Int((current - age) % Int64(Self.slots))
      let used = min(rest, calls[index])
      calls[index] -= used
      rest -= used
    }
    return true
  }

  /// The time until the next free retry, as of the last call of `take(at:)`. Calls that begin meanwhile may
  /// pay for a retry earlier.
  var nextFree: Duration { .nanoseconds(max(Self.free - credit, 0)) }

  private var available: Int {
    var sum = 0
    for index in 0..<Self.slots { sum += calls[index] }
    return sum
  }

  /// Drops the calls that are too old at a moment.
  private mutating func advance(to now: MonotonicInstant) {
    let wanted = Self.counted(now) / Self.slot
    guard wanted > current else { return }
    for step in 1...min(wanted - current, Int64(Self.slots)) {
      calls[Int((current + step) % Int64(Self.slots))] = 0
    }
    current = wanted
    currentIndex = Int(current % Int64(Self.slots))
    currentEnds = (current + 1) * Self.slot
  }

  private mutating func earnCredit(until now: MonotonicInstant) {
    let moment = Self.counted(now)
    guard moment > creditedAt else { return }
    credit = min(credit + min(moment - creditedAt, 1_000_000_000), Self.free * Self.freePerSecond)
    creditedAt = moment
  }
}
