/// Counts how often a request came back unprocessed from the leg that sent it last, and decides whether that
/// leg may send the request again (docs/adr/0026).
struct ReplayCounts: Equatable {
  /// How often a leg may send the request again because the server refused its stream (`refused`). A server
  /// that refuses some streams and takes others is overloaded.
  static let mostRefusals = 3
  /// How often a leg may send the request again because its stream was over the server's limit (`overLimit`).
  /// netopt did not know the limit when it wrote the request. This may happen once on each new connection.
  static let mostUnknownLimits = 32
  /// How often a leg may send the request again because its connection ended (`unwritten`, `leftOut`). A
  /// request may meet several ending connections in a row.
  static let mostEnds = 10

  /// The leg from which the request last came back; the counts below are for this leg. `nil` before the first
  /// return.
  private var leg: Int?
  /// How often the request came back from `leg`, by the kind of its fate. Each kind has its own limit.
  private var refusals = 0
  private var unknownLimits = 0
  private var ends = 0

  /// Counts that the request came back from a leg. The counts of any other leg are dropped.
  ///
  /// - Returns: whether the leg may send the request again. If not, nothing is counted.
  mutating func add(_ fate: SentRequest.Fate, from leg: Int) -> Bool {
    if leg != self.leg {
      self = ReplayCounts()
      self.leg = leg
    }
    return switch fate {
    case .unknown: false
    case .refused: Self.add(to: &refusals, atMost: Self.mostRefusals)
    case .overLimit: Self.add(to: &unknownLimits, atMost: Self.mostUnknownLimits)
    case .unwritten, .leftOut: Self.add(to: &ends, atMost: Self.mostEnds)
    }
  }

  /// Adds one to a count, unless the count has reached its limit. Returns whether it was added.
  private static func add(to count: inout Int, atMost most: Int) -> Bool {
    guard count < most else { return false }
    count += 1
    return true
  }
}
