import NetOptCore

/// The successes and failures of the attempts of the last 30 s. It counts in six spans of 5 s of the
/// monotonic clock. The oldest span is dropped as a whole.
struct OutcomeWindow: Hashable, Sendable {
  /// The length of a span in nanoseconds.
  private static let span = Int64(5_000_000_000)
  /// The number of spans.
  private static let spans = 6
  /// The minimum number of attempts that show anything.
  static let fewest: UInt32 = 5
  /// The minimum percentage of attempts that must succeed.
  static let leastPercent: UInt32 = 80

  // One element for each span, at `index(_:)`. A vector has eight elements; the last two stay zero.
  private var attempts = SIMD8<UInt32>.zero
  /// The failures of each span, counted in halves: 1 for a failure that the service reports, 2 for any other.
  private var failures = SIMD8<UInt32>.zero
  /// The number of the newest span, counted from the start of the clock.
  private var newest: Int64 = 0

  /// Counts an attempt.
  ///
  /// - Parameter halves: 0 for a success, 1 for a failure that counts half, 2 for any other failure.
  mutating func add(halves: UInt32, at now: MonotonicInstant) {
    let number = now.nanoseconds / Self.span
    if number != newest { begin(number) }
    let index = Self.index(number)
    attempts[index] &+= 1
    failures[index] &+= halves
  }

  /// Whether there are at least `fewest` attempts, and fewer than `leastPercent` of them succeeded.
  var isBad: Bool {
    let all = attempts.wrappedSum()
    return all >= Self.fewest && failures.wrappedSum() * 50 > all * (100 - Self.leastPercent)
  }

  /// The counted attempts, and the failures among them, rounded up to a whole number.
  var counts: (attempts: Int, failures: Int) {
    (Int(attempts.wrappedSum()), Int(failures.wrappedSum() + 1) / 2)
  }

  /// Makes a span the newest one. Clears the spans that are older than 30 s by then.
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

  /// The element that counts a span.
  private static func index(_ number: Int64) -> Int { abs(Int(number % Int64(spans))) }
}
