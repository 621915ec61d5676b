/// The ranks of values: equal ones share the mean of the ranks that they take.
struct MidRanks {
  /// The rank of each value, in their order, from 1.
  let ranks: [Double]
  /// The sum of t³ - t over the groups of t equal values: what ties take from a rank statistic's variance.
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
