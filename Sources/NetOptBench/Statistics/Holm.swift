/// Holm's adjustment (1979) of p values for several tests on the same run.
package enum Holm {
  /// The adjusted values, in the order of the given ones.
  package static func adjusted(_ values: [Double]) -> [Double] {
    var adjusted = values
    var largest = 0.0
    for (step, index) in values.indices.sorted(by: { values[$0] < values[$1] }).enumerated() {
      largest = max(largest, min(1, values[index] * Double(values.count - step)))
      adjusted[index] = largest
    }
    return adjusted
  }
}
