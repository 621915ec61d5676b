// Arithmetic that clamps results instead of trapping. Numbers from files, peers and clocks may be so large
// that their sum does not fit into 64 bits.
extension Int64 {
  /// Returns the sum, clamped to the range of `Int64`.
  @inlinable package func addingClamped(_ other: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return !overflow ? sum : other < 0 ? .min : .max
  }

  /// Returns the difference, clamped to the range of `Int64`.
  @inlinable package func subtractingClamped(_ other: Int64) -> Int64 {
    let (difference, overflow) = subtractingReportingOverflow(other)
    return !overflow ? difference : other > 0 ? .min : .max
  }
}
