// Numbers that come from files, peers and clocks may lie at the ends of their type. A sum that does not fit is the nearest number that
// does, instead of a trap.
extension Int64 {
  /// The sum, or the nearest end of 64 bits.
  @inlinable package func addingClamped(_ other: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return !overflow ? sum : other < 0 ? .min : .max
  }

  /// The difference, or the nearest end of 64 bits.
  @inlinable package func subtractingClamped(_ other: Int64) -> Int64 {
    let (difference, overflow) = subtractingReportingOverflow(other)
    return !overflow ? difference : other > 0 ? .min : .max
  }
}
