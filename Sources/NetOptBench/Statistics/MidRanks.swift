/// The ranks of values in ascending order. Equal values share the mean of their ranks.
struct MidRanks {
  /// The rank of each value, from 1. The ranks are in the order in which the values were passed.
  let ranks: [Double]
  /// The sum of t³ - t over all groups of equal values, where t is the number of values in the group. Equal
  /// values reduce the variance of a rank statistic in proportion to this sum.
  let tieTerm: Double

  /// Ranks values.
  init(_ values: [Double]) {
    let order = values.indices.sorted { values[$0] < values[$1] }
    var ranks = [Double](repeating: 0, count: values.count)
    var term = 0.0
    var start = 0
    while start < order.count {
      var end = start + 1
      while end < order.count, values[order[end]] == values[order[start]] { end += 1 }
      for position in start..<end { ranks[order[position]] = Double(start + 1 + end) / 2 }
      let ties = Double(end - start)
      term += ties * ties * ties - ties
      start = end
    }
    self.ranks = ranks
    tieTerm = term
  }
}
