extension FixedWidthInteger {
  /// Converts a number to the nearest integer of this type that is not farther from zero: a number beyond the
  /// type's range gives the end of the range, and NaN gives 0. The initialisers of the standard library trap
  /// for such numbers, and numbers that are computed from measurements or from a file can have any size.
  package init(clamped number: Double) {
    // `exactly` of a rounded number fails only for numbers outside the range, and for NaN.
    self = Self(exactly: number.rounded(.towardZero)) ?? (number.isNaN ? 0 : number < 0 ? .min : .max)
  }
}
