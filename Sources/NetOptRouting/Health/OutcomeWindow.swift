import NetOptCore

/// Counts the attempts of the last 30 s and their failures. The counts are kept in six spans of 5 s of the
/// monotonic clock. A new span replaces the oldest span as a whole.
struct OutcomeWindow: Hashable, Sendable {
  /// The length of a span in nanoseconds.
  private static let span = Int64(5_000_000_000)
  /// The number of spans.
  private static let spans = 6
  /// The minimum number of attempts with which `isBad` can be true.
  static let fewest: UInt32 = 5
  /// The minimum percentage of attempts that must succeed.
  static let leastPercent: UInt32 = 80

  /// The attempts of each span. The element of a span is at `index(_:)`. A vector has eight elements; the
  /// last two stay zero.
  private var attempts = SIMD8<UInt32>.zero
  /// The failures of each span, at the same elements, counted in halves: 1 for a failure that counts half, 2
  /// for any other failure.
  private var failures = SIMD8<UInt32>.zero
  /// The number of the newest span: the time since the start of the clock, divided by `span`.
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

  /// The number of counted attempts, and the number of failures among them, rounded up to a whole number.
  var counts: (attempts: Int, failures: Int) {
    (Int(attempts.wrappedSum()), Int(failures.wrappedSum() + 1) / 2)
  }

  /// Makes the span with a number the newest span. Clears the counts of the spans that are too old by then.
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

  /// The index of the vector element that counts the span with a number.
  private static func index(_ number: Int64) -> Int { abs(Int(number % Int64(spans))) }
}
