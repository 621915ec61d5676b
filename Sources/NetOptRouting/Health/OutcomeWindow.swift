import NetOptCore

/// How many attempts of the last half minute succeeded: counts in six spans of five seconds, the oldest of which is
/// forgotten as a whole.
struct OutcomeWindow: Hashable, Sendable {
  /// How long a span lasts, and how many there are.
  private static let span = Int64(5_000_000_000)
  private static let spans = 6
  /// The fewest attempts that show anything.
  static let fewest: UInt32 = 5
  /// The smallest part of them, in percent, that has to succeed.
  static let leastPercent: UInt32 = 80

  // The last two of the eight places stay empty.
  private var attempts = SIMD8<UInt32>.zero
  /// In halves: what the service answers counts half.
  private var failures = SIMD8<UInt32>.zero
  /// The number of the newest span.
  private var newest: Int64 = 0

  /// Counts an attempt.
  ///
  /// - Parameter halves: 0 for a success, 2 for a failure, 1 for half of one.
  mutating func add(halves: UInt32, at now: MonotonicInstant) {
    let number = now.nanoseconds / Self.span
    if number != newest { begin(number) }
    let place = Self.place(number)
    attempts[place] &+= 1
    failures[place] &+= halves
  }

  /// Whether too few attempts succeed, with what was counted until now.
  var isBad: Bool {
    let all = attempts.wrappedSum()
    return all >= Self.fewest && failures.wrappedSum() * 50 > all * (100 - Self.leastPercent)
  }

  /// The attempts that were counted, and those of them that failed.
  var counts: (attempts: Int, failures: Int) {
    (Int(attempts.wrappedSum()), Int(failures.wrappedSum() + 1) / 2)
  }

  private mutating func begin(_ number: Int64) {
    // Spans in which nothing happened are forgotten as well.
    if number < newest || number - newest >= Int64(Self.spans) {
      (attempts, failures) = (.zero, .zero)
    } else {
      for old in (newest + 1)...number {
        attempts[Self.place(old)] = 0
        failures[Self.place(old)] = 0
      }
    }
    newest = number
  }

  private static func place(_ number: Int64) -> Int { abs(Int(number % Int64(spans))) }
}
