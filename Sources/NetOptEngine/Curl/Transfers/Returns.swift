/// How often a request came back from the leg that sent it last because it was not processed, and whether it may go there once more
/// (docs/adr/0026).
struct Returns: Equatable {
  /// The most refusals by a server that takes others: it is overloaded.
  static let mostRefusals = 3
  /// The most by limits of streams that were not known when the request was written. Each new connection may have one.
  static let mostUnknownLimits = 32
  /// The most by connections that ended: they may do so for many requests in a row.
  static let mostEnds = 10

  private var leg: Int?
  private var refusals = 0
  private var unknownLimits = 0
  private var ends = 0

  /// Counts a return from a leg.
  ///
  /// - Returns: whether the request may be sent there again. Nothing is counted when it may not.
  mutating func add(_ fate: SentRequest.Fate, from leg: Int) -> Bool {
    if leg != self.leg {
      self = Returns()
      self.leg = leg
    }
    return switch fate {
    case .unknown: false
    case .refused: Self.add(to: &refusals, atMost: Self.mostRefusals)
    case .overLimit: Self.add(to: &unknownLimits, atMost: Self.mostUnknownLimits)
    case .unwritten, .leftOut: Self.add(to: &ends, atMost: Self.mostEnds)
    }
  }

  private static func add(to count: inout Int, atMost most: Int) -> Bool {
    guard count < most else { return false }
    count += 1
    return true
  }
}
