package import NetOptCore

/// Limits how many retries and hedges a client sends: one for every five calls of the last 10 s, plus ten
/// free ones per second.
///
/// The retries that calls pay for let a busy client continue when an endpoint dies, and prevent all clients
/// together from doubling the load of a failing service. The free retries let a client with few calls retry
/// at all. In any period of T seconds, there are at most 0.2 retries for each call of that period and the 10
/// s before it, plus 10 · (T + 1).
///
/// The budget is a value type and reads no clock: callers pass the present moment. A moment before the latest
/// one counts as the latest one.
package struct RetryBudget: Sendable {
  /// The number of calls that pay for one retry.
  static let callsPerRetry = 5
  /// How long a call can pay for a retry.
  static let memory = Duration.seconds(10)
  /// The number of free retries per second. Those of one second can be used at once.
  static let freePerSecond: Int64 = 10

  /// The number of parts into which `memory` is divided.
  private static let slots = 10
  /// The length of such a part in nanoseconds.
  private static let slot = memory.nanoseconds / Int64(slots)
  /// The time in nanoseconds in which a free retry is earned.
  private static let free = 1_000_000_000 / freePerSecond

  /// The number of calls in each tenth of `memory` that have not paid for a retry. The tenth with number n
  /// has the index n modulo 10.
  private var calls = InlineArray<10, Int>(repeating: 0)
  /// The number of the current tenth, counted from the start of the monotonic clock.
  private var current: Int64
  /// The index of the current tenth in `calls`.
  private var currentIndex: Int
  /// The end of the current tenth in nanoseconds of the clock.
  private var currentEnds: Int64
  /// The free retries that are left, as the time in nanoseconds in which they are earned: `free` for each.
  private var credit: Int64
  /// The moment until which `credit` is counted, in nanoseconds of the clock.
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

  /// Takes a retry from the budget.
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

  /// The number of calls that have not paid for a retry.
  private var available: Int {
    var sum = 0
    for index in 0..<Self.slots { sum += calls[index] }
    return sum
  }

  /// Makes the tenth of a moment the current one, and drops the calls that are too old by then.
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

  /// Adds the free retries that were earned until a moment.
  private mutating func earnCredit(until now: MonotonicInstant) {
    let moment = Self.counted(now)
    guard moment > creditedAt else { return }
    credit = min(credit + min(moment - creditedAt, 1_000_000_000), Self.free * Self.freePerSecond)
    creditedAt = moment
  }
}
