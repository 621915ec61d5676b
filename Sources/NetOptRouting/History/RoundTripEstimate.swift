import NetOptCore

/// A smoothed time (SRTT) and its variation (RTTVAR), after RFC 6298, section 2. The time is a round trip, or
/// the time until a connection is ready.
struct RoundTripEstimate: Hashable, Sendable {
  /// The longest time that counts, in nanoseconds: 1 h. Longer samples count as this time. The limit keeps
  /// sums of nanoseconds far from overflowing.
  static let longest: Int64 = 3_600_000_000_000
  /// The time constant in nanoseconds: 6 min. A sample that comes the time t after the previous sample weighs
  /// at least t/(t + 6 min) in SRTT.
  private static let memory: Int64 = 360_000_000_000

  /// SRTT in nanoseconds.
  private(set) var smoothedNanoseconds: Int64
  /// RTTVAR in nanoseconds.
  private var variationNanoseconds: Int64

  /// Begins an estimate with its first sample. The variation begins at half of the sample.
  init(_ sample: Duration) {
    smoothedNanoseconds = Self.clamped(sample)
    variationNanoseconds = smoothedNanoseconds / 2
  }

  /// Restores a saved estimate; `nil` for times outside of 0 to `longest`.
  init?(smoothed: Duration, variation: Duration) {
    let range = 0...Self.longest
    guard range.contains(smoothed.nanoseconds), range.contains(variation.nanoseconds) else { return nil }
    self.init(smoothed: smoothed.nanoseconds, variation: variation.nanoseconds)
  }

  /// Makes an estimate from times in nanoseconds that are known to be in range.
  private init(smoothed: Int64, variation: Int64) {
    smoothedNanoseconds = smoothed
    variationNanoseconds = variation
  }

  /// SRTT: the smoothed time.
  var smoothed: Duration { .nanoseconds(smoothedNanoseconds) }
  /// RTTVAR: the smoothed distance of the samples from SRTT.
  var variation: Duration { .nanoseconds(variationNanoseconds) }
  /// The time that nearly no sample exceeds: SRTT + 4 · RTTVAR.
  var bound: Duration { .nanoseconds(boundNanoseconds) }
  /// `bound` in nanoseconds.
  var boundNanoseconds: Int64 { smoothedNanoseconds + 4 * variationNanoseconds }

  /// Adds a sample R: RTTVAR ← 3/4 · RTTVAR + 1/4 · |SRTT − R|, then SRTT ← 7/8 · SRTT + 1/8 · R.
  ///
  /// RFC 6298 samples each round trip, but an endpoint is measured only every few minutes. So when t/(t + 6
  /// min) is more than 1/8, it replaces 1/8 as the weight of R in SRTT. It also replaces 1/4 as the weight in
  /// RTTVAR when it is more than 1/4. So old samples lose their weight after a few measurements.
  ///
  /// - Parameter age: the time t since the previous sample.
  mutating func add(_ sample: Duration, age: Duration = .zero) {
    let sample = Self.clamped(sample)
    let age = min(max(age.nanoseconds, 0), Self.longest)
    let difference = sample - smoothedNanoseconds
    guard age > Self.memory / 7 else {
      variationNanoseconds = (3 * variationNanoseconds + abs(difference)) / 4
      smoothedNanoseconds = (7 * smoothedNanoseconds + sample) / 8
      return
    }
    let weight = Double(age) / Double(age + Self.memory)
    let variation = Double(abs(difference) - variationNanoseconds) * max(weight, 0.25)
    variationNanoseconds += Int64(variation)
    smoothedNanoseconds += Int64(Double(difference) * weight)
  }

  /// The estimate for an operation that takes `factor` times as long.
  func scaled(by factor: Int64) -> RoundTripEstimate {
    RoundTripEstimate(smoothed: smoothedNanoseconds * factor, variation: variationNanoseconds * factor)
  }

  private static func clamped(_ sample: Duration) -> Int64 { clamped(sample.nanoseconds) }

  /// The time that counts for a sample: the sample in nanoseconds, limited to 0 to `longest`.
  static func clamped(_ nanoseconds: Int64) -> Int64 { min(max(nanoseconds, 0), longest) }
}

extension Optional<RoundTripEstimate> {
  /// Adds a sample. The first sample begins the estimate.
  mutating func add(_ sample: Duration, age: Duration = .zero) {
    if self == nil { self = RoundTripEstimate(sample) } else { self?.add(sample, age: age) }
  }
}
