/// Holm's adjustment (1979) of the p values of several tests. When a test counts as significant if its
/// adjusted p value is below the significance level, the probability of at least one wrong "significant"
/// among the tests is at most this level.
package enum Holm {
  /// The adjusted p values, in the order of `values`.
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
