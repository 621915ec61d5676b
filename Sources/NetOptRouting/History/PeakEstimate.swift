import NetOptCore

/// A moving average that takes a larger sample at once, and forgets it by and by: a peak-EWMA.
///
/// What it forgets is weighed with τ/(τ + t), which falls as e^(-t/τ) does at first and costs a division.
struct PeakEstimate: Hashable, Sendable {
  /// How fast smaller samples pull it down while they come.
  static let busy: Int64 = 10_000_000_000
  /// How fast it falls when none come: an endpoint that nobody uses has had no occasion to show that it is better.
  static let idle: Int64 = 60_000_000_000

  private var nanoseconds: Int64 = 0
  /// When the last sample was taken.
  private(set) var last: MonotonicInstant?

  /// Takes a sample: nanoseconds, at most `RoundTripEstimate.longest`.
  mutating func add(_ sample: Int64, at now: MonotonicInstant) {
    defer { last = now }
    guard let last, sample < nanoseconds else {
      nanoseconds = sample
      return
    }
    let passed = Double(max(now.nanoseconds(since: last), 0))
    nanoseconds += Int64(Double(sample - nanoseconds) * passed / (passed + Double(Self.busy)))
  }

  /// The estimate when no sample has come since the last one.
  func value(at now: MonotonicInstant) -> Int64 {
    guard let last else { return 0 }
    let passed = Double(max(now.nanoseconds(since: last), 0))
    return Int64(Double(nanoseconds) * Double(Self.idle) / (passed + Double(Self.idle)))
  }
}

/// How long the servers of an origin usually take to begin an answer, all endpoints together: the mean and the mean
/// deviation, which follow what happens over minutes.
struct UsualTime: Hashable, Sendable {
  /// The fewest samples that show what is usual.
  static let fewest = 8
  /// The number of samples after which time decides how much one weighs.
  private static let settled = 16
  private static let memory = 300e9
  /// By how much an answer is later at least to be an unusual one.
  private static let leastMargin = 5e6

  private var mean = 0.0
  private var deviation = 0.0
  private var count = 0
  private var last = MonotonicInstant(nanoseconds: 0)
  /// Which endpoint last answered within the bound, and when.
  private var lastInTime = -1
  private var lastInTimeAt = MonotonicInstant(nanoseconds: 0)

  /// By when nearly every answer has begun, or `nil` as long as too little is known.
  var bound: Int64? {
    count < Self.fewest ? nil : Int64(mean + max(4 * deviation, Self.leastMargin))
  }

  /// Takes a sample in nanoseconds. One beyond the bound counts as one at the bound: a server that has become slow
  /// must not be what is usual after a few answers, and an origin that has become slow as a whole is after minutes. While another
  /// endpoint answers within the bound, answers beyond it do not count: at a few requests a minute the slow server would become the norm.
  ///
  /// - Parameter endpoint: the endpoint's index.
  mutating func add(_ sample: Int64, of endpoint: Int, at now: MonotonicInstant) {
    let bound = bound ?? .max
    if sample <= bound {
      (lastInTime, lastInTimeAt) = (endpoint, now)
    } else if endpoint != lastInTime, Double(now.nanoseconds(since: lastInTimeAt)) < Self.memory {
      return
    }
    let sample = Double(min(sample, bound))
    let passed = Double(max(now.nanoseconds(since: last), 0))
    last = now
    var weight = passed / (passed + Self.memory)
    if count < Self.settled {
      count += 1
      weight = max(weight, 1 / Double(count))
    }
    // After a long break one sample is not the whole truth.
    weight = count == 1 ? 1 : min(weight, 0.25)
    deviation += (abs(sample - mean) - deviation) * (count == 1 ? 0 : weight)
    mean += (sample - mean) * weight
  }
}
