// Saturating arithmetic. Numbers from files, peers and clocks may lie at the ends of their type, where a
// normal sum would trap.
extension Int64 {
  /// Returns the sum, clamped to the range of 64 bits.
  @inlinable package func addingClamped(_ other: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return !overflow ? sum : other < 0 ? .min : .max
  }

  /// Returns the difference, clamped to the range of 64 bits.
  @inlinable package func subtractingClamped(_ other: Int64) -> Int64 {
    let (difference, overflow) = subtractingReportingOverflow(other)
    return !overflow ? difference : other > 0 ? .min : .max
  }
}
