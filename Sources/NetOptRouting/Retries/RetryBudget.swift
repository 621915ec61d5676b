package import NetOptCore

/// How many requests may be sent again, or beside themselves: one for every five calls of the last ten seconds, and ten a
/// second on top.
///
/// The first part lets a busy client carry on when an endpoint dies, and keeps all clients together from doubling the load
/// of a service that is going down; the second lets a client that makes few calls retry at all. Over any time of T
/// seconds there are at most 0.2 for each call of that time and the ten seconds before it, and 10 · (T + 1).
///
/// A value that is told the moment; moments that go back count as the latest one.
package struct RetryBudget: Sendable {
  /// How many calls pay for a retry.
  static let callsPerRetry = 5
  /// How long a call counts.
  static let memory = Duration.seconds(10)
  /// How many retries a second are free. So many may be made at once.
  static let freePerSecond: Int64 = 10

  private static let slots = 10
  private static let slot = memory.nanoseconds / Int64(slots)
  private static let free = 1_000_000_000 / freePerSecond

  /// The calls of each tenth of the memory that no retry has used up.
  private var calls = InlineArray<10, Int>(repeating: 0)
  /// The tenth that is being filled, counted from the clock's start.
  private var current: Int64
  private var currentIndex: Int
  private var currentEnds: Int64
  /// The free retries that are left, as the time in which they came together.
  private var credit: Int64
  private var creditedAt: Int64

  /// Makes a budget of which nothing has been used.
  package init(at now: MonotonicInstant) {
    let moment = Self.counted(now)
    current = moment / Self.slot
    currentIndex = Int(current % Int64(Self.slots))
    currentEnds = (current + 1) * Self.slot
    creditedAt = moment
    credit = Self.free * Self.freePerSecond
  }

  /// The moment in nanoseconds, within what a tenth can be counted from and to.
  private static func counted(_ moment: MonotonicInstant) -> Int64 {
    min(max(moment.nanoseconds, 0), .max - slot)
  }

  /// A call begins.
  package mutating func callBegins(at now: MonotonicInstant) {
    // Nearly every call of a busy client begins in the tenth of the one before.
    if now.nanoseconds >= currentEnds { advance(to: now) }
    calls[currentIndex] &+= 1
  }

  /// Takes what a retry costs.
  ///
  /// - Returns: whether there was enough; otherwise nothing was taken.
  package mutating func take(at now: MonotonicInstant) -> Bool {
    advance(to: now)
    earnCredit(until: now)
    // What is free comes first: it comes again by itself.
    if credit >= Self.free {
      credit -= Self.free
      return true
    }
    guard available >= Self.callsPerRetry else { return false }
    // The oldest calls first: they are the next to be forgotten.
    var rest = Self.callsPerRetry
    for age in (0..<Int64(Self.slots)).reversed() where current >= age {
      let index = Int((current - age) % Int64(Self.slots))
      let used = min(rest, calls[index])
      calls[index] -= used
      rest -= used
    }
    return true
  }

  /// When the next free retry is there, as of the last one that was asked for. Calls that begin meanwhile may pay for one before.
  var nextFree: Duration { .nanoseconds(max(Self.free - credit, 0)) }

  private var available: Int {
    var sum = 0
    for index in 0..<Self.slots { sum += calls[index] }
    return sum
  }

  /// Forgets the calls that are too old at a moment.
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
