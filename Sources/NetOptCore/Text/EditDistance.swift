/// Computes the edit distance between words, to suggest the right word after a typing error.
package enum EditDistance {
  /// Returns the smallest number of edits that turn one word into the other. An edit inserts, deletes or
  /// replaces a letter, or swaps two neighbours (optimal string alignment).
  package static func between(_ a: String, _ b: String) -> Int {
    let (a, b) = (Array(a), Array(b))
    // Each row of the table needs only the two rows before it, because a swap looks two rows back.
    var beforeLast: [Int] = []
    var last = Array(0...b.count)
    for i in a.indices {
      var row = [i + 1]
      for j in b.indices {
        var cost = min(last[j] + (a[i] == b[j] ? 0 : 1), min(last[j + 1], row[j]) + 1)
        if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { cost = min(cost, beforeLast[j - 1] + 1) }
        row.append(cost)
      }
      (beforeLast, last) = (last, row)
    }
    return last[b.count]
  }

  /// Returns the most similar word; `nil` when no word is similar enough, and when `word` has fewer than 2 or
  /// more than 64 letters. About a third of the letters may be wrong.
  package static func closest(to word: String, among words: [String]) -> String? {
    // Nobody types a longer word by hand, and the time grows with the product of the lengths.
    guard (2...64).contains(word.count) else { return nil }
    return words.map { (word: $0, distance: between(word, $0)) }
      .filter { $0.distance <= max(1, (max(word.count, $0.word.count) + 1) / 3) }
      .min { $0.distance < $1.distance }?.word
  }
}
