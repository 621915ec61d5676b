import NetOptCore

/// The successes and failures of the attempts of the last 30 s. It counts in six spans of 5 s, and drops the
/// oldest span as a whole.
struct OutcomeWindow: Hashable, Sendable {
  /// The length of a span in nanoseconds, and the number of spans.
  private static let span = Int64(5_000_000_000)
  private static let spans = 6
  /// The minimum number of attempts that show anything.
  static let fewest: UInt32 = 5
  /// The minimum percentage of attempts that must succeed.
  static let leastPercent: UInt32 = 80

  // The last two of the eight elements stay empty.
  private var attempts = SIMD8<UInt32>.zero
  /// Counted in halves: a failure that the service reports counts half.
  private var failures = SIMD8<UInt32>.zero
  /// The number of the newest span.
  private var newest: Int64 = 0

  /// Counts an attempt.
  ///
  /// - Parameter halves: 0 for a success, 2 for a failure, 1 for half of one.
  mutating func add(halves: UInt32, at now: MonotonicInstant) {
    let number = now.nanoseconds / Self.span
    if number != newest { begin(number) }
    let index = Self.index(number)
    attempts[index] &+= 1
    failures[index] &+= halves
  }

  /// Whether too few of the counted attempts succeeded.
  var isBad: Bool {
    let all = attempts.wrappedSum()
    return all >= Self.fewest && failures.wrappedSum() * 50 > all * (100 - Self.leastPercent)
  }

  /// The counted attempts, and the failures among them.
  var counts: (attempts: Int, failures: Int) {
    (Int(attempts.wrappedSum()), Int(failures.wrappedSum() + 1) / 2)
  }

  private mutating func begin(_ number: Int64) {
    // Spans without attempts are cleared as well.
    if number < newest || number - newest >= Int64(Self.spans) {
      (attempts, failures) = (.zero, .zero)
    } else {
      for old in (newest + 1)...number {
        attempts[Self.index(old)] = 0
        failures[Self.index(old)] = 0
      }
    }
    newest = number
  }

  private static func index(_ number: Int64) -> Int { abs(Int(number % Int64(spans))) }
}
