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

  /// The estimate at the moment `last`.
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
  /// The time constant in nanoseconds: 300 s. A sample that comes the time t after the previous one weighs
  /// t/(t+300 s).
  private static let memory = 300e9
  /// The minimum difference between the mean and `bound`, in nanoseconds.
  private static let leastMargin = 5e6

  /// The mean of the samples in nanoseconds.
  private var mean = 0.0
  /// The mean distance of the samples from the mean, in nanoseconds.
  private var deviation = 0.0
  /// The number of samples, at most `warmUpSamples`.
  private var count = 0
  /// When the last sample was added.
  private var last = MonotonicInstant(nanoseconds: 0)
  /// The index of the endpoint that last responded within the bound; -1 before the first sample.
  private var lastInTime = -1
  /// When this endpoint last responded within the bound.
  private var lastInTimeAt = MonotonicInstant(nanoseconds: 0)

  /// The time in nanoseconds by which nearly every response has begun; `nil` with fewer than `fewest`
  /// samples.
  var bound: Int64? {
    count < Self.fewest ? nil : Int64(mean + max(4 * deviation, Self.leastMargin))
  }

  /// Adds a sample in nanoseconds. A sample beyond the bound counts as one at the bound. So a few responses
  /// of a server that has become slow do not raise the bound, but an origin that has become slow as a whole
  /// raises it within minutes. A sample beyond the bound does not count at all when another endpoint
  /// responded within the bound in the last 5 min. Otherwise, at a few requests per minute, a slow server
  /// would raise the bound.
  ///
  /// - Parameter endpoint: the index of the endpoint that responded.
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
