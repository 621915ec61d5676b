import NetOptCore

/// A moving average that adopts a larger sample at once and forgets it gradually: a peak EWMA.
///
/// The old value weighs τ/(τ + t) after the time t. At first this falls like e^(-t/τ), and it costs only a
/// division.
struct PeakEstimate: Hashable, Sendable {
  /// The time constant τ in nanoseconds with which smaller samples pull the estimate down.
  static let busy: Int64 = 10_000_000_000
  /// The time constant τ in nanoseconds with which the estimate falls while no samples come: an endpoint
  /// without requests cannot show that it has become faster.
  static let idle: Int64 = 60_000_000_000

  private var nanoseconds: Int64 = 0
  /// When the last sample was added.
  private(set) var last: MonotonicInstant?

  /// Adds a sample in nanoseconds, at most `RoundTripEstimate.longest`.
  mutating func add(_ sample: Int64, at now: MonotonicInstant) {
    defer { last = now }
    guard let last, sample < nanoseconds else {
      nanoseconds = sample
      return
    }
    let passed = Double(max(now.nanoseconds(since: last), 0))
    nanoseconds += Int64(Double(sample - nanoseconds) * passed / (passed + Double(Self.busy)))
  }

  /// The estimate in nanoseconds at a moment after the last sample.
  func value(at now: MonotonicInstant) -> Int64 {
    guard let last else { return 0 }
    let passed = Double(max(now.nanoseconds(since: last), 0))
    return Int64(Double(nanoseconds) * Double(Self.idle) / (passed + Double(Self.idle)))
  }
}

/// The usual time until the servers of an origin begin a response, over all endpoints: the mean and the mean
/// deviation. Both follow changes within minutes.
struct UsualTime: Hashable, Sendable {
  /// The minimum number of samples that show what is usual.
  static let fewest = 8
  /// The number of samples after which only the time between samples decides their weight.
  private static let warmUpSamples = 16
  private static let memory = 300e9
  /// The minimum difference between the mean and `bound`, in nanoseconds.
  private static let leastMargin = 5e6

  private var mean = 0.0
  private var deviation = 0.0
  private var count = 0
  private var last = MonotonicInstant(nanoseconds: 0)
  /// The index of the endpoint that last answered within the bound, and when it did.
  private var lastInTime = -1
  private var lastInTimeAt = MonotonicInstant(nanoseconds: 0)

  /// The time in nanoseconds by which nearly every response has begun; `nil` with fewer than `fewest`
  /// samples.
  var bound: Int64? {
    count < Self.fewest ? nil : Int64(mean + max(4 * deviation, Self.leastMargin))
  }

  /// Adds a sample in nanoseconds. A sample beyond the bound counts as one at the bound. So a server that has
  /// become slow does not become the norm after a few responses, but an origin that has become slow as a
  /// whole does within minutes. While another endpoint answers within the bound, samples beyond it do not
  /// count: at a few requests per minute, the slow server would become the norm.
  ///
  /// - Parameter endpoint: the index of the endpoint.
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
    if count < Self.warmUpSamples {
      count += 1
      weight = max(weight, 1 / Double(count))
    }
    // After a long break, one sample must not decide alone.
    weight = count == 1 ? 1 : min(weight, 0.25)
    deviation += (abs(sample - mean) - deviation) * (count == 1 ? 0 : weight)
    mean += (sample - mean) * weight
  }
}
