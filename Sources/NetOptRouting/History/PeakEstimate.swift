import NetOptCore

/// A moving average that adopts a larger sample at once and forgets it gradually: a peak EWMA.
///
/// The old value weighs τ/(τ + t) after the time t. At first this weight falls like the usual e^(-t/τ), but
/// it costs only a division.
struct PeakEstimate: Hashable, Sendable {
  /// The time constant τ in nanoseconds with which a smaller sample lowers the estimate: 10 s.
  static let busy: Int64 = 10_000_000_000
  /// The time constant τ in nanoseconds with which the estimate falls while no samples come: 60 s. It must
  /// fall, because an endpoint without requests cannot show that it has become faster.
  static let idle: Int64 = 60_000_000_000

  /// The estimate in nanoseconds at the moment `last`.
  private var nanoseconds: Int64 = 0
  /// When the last sample was added; `nil` without samples.
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

  /// The estimate in nanoseconds at a moment after the last sample; 0 without samples.
  func value(at now: MonotonicInstant) -> Int64 {
    guard let last else { return 0 }
    let passed = Double(max(now.nanoseconds(since: last), 0))
    return Int64(Double(nanoseconds) * Double(Self.idle) / (passed + Double(Self.idle)))
  }
}

/// The usual response time of an origin, over all endpoints: the mean and the mean deviation. A response time
/// is the time from the last byte of a request to the first byte of its response, less a round trip. Mean and
/// deviation follow changes within minutes.
struct UsualTime: Hashable, Sendable {
  /// The minimum number of samples for a `bound`.
  static let fewest = 8
  /// The number of samples, from the first on, that have a minimum weight: the n-th weighs at least 1/n, or
  /// 1/4 if that is less. Only the time between samples decides the weight of later samples.
  private static let warmUpSamples = 16
  /// The time constant in nanoseconds: 300 s. A sample that comes the time t after the previous sample weighs
  /// t/(t + 300 s).
  private static let memory = 300e9
  /// The minimum difference between the mean and `bound`, in nanoseconds.
  private static let leastMargin = 5e6

  /// The mean of the samples in nanoseconds.
  private var mean = 0.0
  /// The mean distance of the samples from the mean, in nanoseconds.
  private var deviation = 0.0
  /// The number of samples so far; stops at `warmUpSamples`.
  private var count = 0
  /// When the last sample was added.
  private var last = MonotonicInstant(nanoseconds: 0)
  /// The index in the list of the endpoint that last responded within the bound; -1 before the first sample.
  private var lastInTime = -1
  /// When the endpoint `lastInTime` last responded within the bound.
  private var lastInTimeAt = MonotonicInstant(nanoseconds: 0)

  /// The time in nanoseconds by which nearly every response has begun; `nil` with fewer than `fewest`
  /// samples.
  var bound: Int64? {
    count < Self.fewest ? nil : Int64(mean + max(4 * deviation, Self.leastMargin))
  }

  /// Adds a sample: a response time in nanoseconds.
  ///
  /// A sample beyond the bound counts like a sample at the bound. So a few responses of a server that has
  /// become slow do not raise the bound, but an origin that has become slow as a whole raises it within
  /// minutes. A sample beyond the bound does not count at all when another endpoint was the last to respond
  /// within the bound, in the last 5 min. Without this rule, a slow server would raise the bound at a rate of
  /// a few requests per minute.
  ///
  /// - Parameter endpoint: the index in the list of the endpoint that responded.
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
