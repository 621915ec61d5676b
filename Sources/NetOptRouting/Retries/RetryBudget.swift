package import NetOptCore

/// Limits how many retries and hedges a client sends: one for every five calls of the last 10 s, plus ten
/// free retries per second.
///
/// The retries that calls pay for let a busy client continue when an endpoint dies, and prevent all clients
/// together from doubling the load of a failing service. The free retries let a client with few calls retry
/// at all. In any period of T seconds, there are at most 0.2 retries for each call of that period and the 10
/// s before it, plus 10 · (T + 1).
///
/// The budget is a value type and reads no clock: callers pass the present moment. If a caller passes an
/// earlier moment than a previous caller did, the budget uses the previous moment.
package struct RetryBudget: Sendable {
  /// The number of calls that pay for one retry.
  static let callsPerRetry = 5
  /// How long after its start a call can pay for a retry.
  static let memory = Duration.seconds(10)
  /// The number of free retries per second. At most this many accumulate, and they can be used at once.
  static let freePerSecond: Int64 = 10

  /// The number of parts into which `memory` is divided. The budget counts the calls of each part (a tenth of
  /// `memory`).
  private static let slots = 10
  /// The length of each part in nanoseconds: 1 s.
  private static let slot = memory.nanoseconds / Int64(slots)
  /// The time in nanoseconds in which one free retry is earned: 0.1 s.
  private static let free = 1_000_000_000 / freePerSecond

  /// For each tenth of `memory`, the number of calls that began in it and have not paid for a retry. The
  /// tenth with number n has the index n modulo 10.
  private var calls = InlineArray<10, Int>(repeating: 0)
  /// The number of the current tenth, counted from the start of the monotonic clock.
  private var current: Int64
  /// The index of the current tenth in `calls`.
  private var currentIndex: Int
  /// The end of the current tenth in nanoseconds of the monotonic clock.
  private var currentEnds: Int64
  /// The remaining free retries, in nanoseconds of earning time. One retry is worth `free` nanoseconds.
  private var credit: Int64
  /// When free retries were last added to `credit`, in nanoseconds of the monotonic clock.
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
  /// - Returns: whether the budget allows the retry. If not, nothing is taken.
  package mutating func take(at now: MonotonicInstant) -> Bool {
    advance(to: now)
    earnCredit(until: now)
    // Free retries are used first, because new ones are earned all the time.
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

  /// The time from the last call of `take(at:)` until the next free retry. Calls that begin in this time may
  /// pay for a retry earlier.
  var nextFree: Duration { .nanoseconds(max(Self.free - credit, 0)) }

  /// The number of calls within `memory` that have not paid for a retry.
  private var available: Int {
    var sum = 0
    for index in 0..<Self.slots { sum += calls[index] }
    return sum
  }

  /// Makes the tenth of a moment the current tenth, and drops the calls that are too old at this moment.
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

  /// Adds the free retries that were earned between `creditedAt` and a moment.
  private mutating func earnCredit(until now: MonotonicInstant) {
    let moment = Self.counted(now)
    guard moment > creditedAt else { return }
    credit = min(credit + min(moment - creditedAt, 1_000_000_000), Self.free * Self.freePerSecond)
    creditedAt = moment
  }
}
