import NetOptCore

/// A smoothed time and its variation, after RFC 6298, section 2.
struct RoundTripEstimate: Hashable, Sendable {
  /// The longest sample that is believed. It keeps sums of nanoseconds far from overflowing.
  private static let longest = Duration.seconds(3600).nanoseconds

  private var smoothedNanoseconds: Int64
  private var variationNanoseconds: Int64

  /// Begins with a first sample: half of it is taken for the variation.
  init(_ sample: Duration) {
    smoothedNanoseconds = Self.believed(sample)
    variationNanoseconds = smoothedNanoseconds / 2
  }

  /// An estimate that was made before; `nil` for times that no sample could give.
  init?(smoothed: Duration, variation: Duration) {
    let range = 0...Self.longest
    guard range.contains(smoothed.nanoseconds), range.contains(variation.nanoseconds) else { return nil }
    self.init(smoothed: smoothed.nanoseconds, variation: variation.nanoseconds)
  }

  private init(smoothed: Int64, variation: Int64) {
    smoothedNanoseconds = smoothed
    variationNanoseconds = variation
  }

  /// SRTT.
  var smoothed: Duration { .nanoseconds(smoothedNanoseconds) }
  /// RTTVAR.
  var variation: Duration { .nanoseconds(variationNanoseconds) }
  /// By when nearly every answer is there: SRTT + 4 · RTTVAR.
  var bound: Duration { .nanoseconds(smoothedNanoseconds + 4 * variationNanoseconds) }

  /// Takes another sample: RTTVAR ← 3/4 · RTTVAR + 1/4 · |SRTT − R|, then SRTT ← 7/8 · SRTT + 1/8 · R.
  mutating func add(_ sample: Duration) {
    let sample = Self.believed(sample)
    variationNanoseconds = (3 * variationNanoseconds + abs(smoothedNanoseconds - sample)) / 4
    smoothedNanoseconds = (7 * smoothedNanoseconds + sample) / 8
  }

  /// The estimate for something that takes `factor` of these round trips.
  func scaled(by factor: Int64) -> RoundTripEstimate {
    RoundTripEstimate(smoothed: smoothedNanoseconds * factor, variation: variationNanoseconds * factor)
  }

  private static func believed(_ sample: Duration) -> Int64 { min(max(sample.nanoseconds, 0), longest) }
}

extension Optional<RoundTripEstimate> {
  /// Takes a sample: the first one begins the estimate.
  mutating func add(_ sample: Duration) {
    if self == nil { self = RoundTripEstimate(sample) } else { self?.add(sample) }
  }
}
