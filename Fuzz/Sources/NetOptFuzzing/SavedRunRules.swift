import NetOptBench

/// The rules for saved runs of `netopt bench`. Every run that can be read can be summed up, compared and used
/// for the suggestion of a list, and the texts about it contain no control characters except line feeds.
enum SavedRunRules {
  /// Checks a saved run. Returns a description of the broken rule, or `nil` when all rules hold.
  static func run(_ input: [UInt8]) -> String? {
    guard let run = try? SavedRun(input) else { return nil }
    let comparison = RunComparison(run, run, alpha: 0.05, minimumEffect: 0)
    if comparison.hasRegression { return "a run is worse than itself" }
    var texts = [comparison.text]
    var sum = MergedRun(run)
    let json = sum.json.bytes()
    guard let again = try? SavedRun(json) else { return "a sum that was written cannot be read" }
    if MergedRun(again).json.bytes() != json { return "the sum is another one when it is written and read" }
    texts.append(sum.text)
    let counts = run.targets.map { target in target.counts.values.reduce(0, +) }
    if (try? sum.add(run)) != nil {
      let doubled = sum.run.targets.map { target in target.counts.values.reduce(0, +) }
      if doubled != counts.map({ 2 * $0 }) { return "twice a run is not twice as many requests" }
      texts.append(sum.text)
    }
    if let suggestion = try? ListSuggestion(run) {
      if suggestion.order.isEmpty, suggestion.removals.isEmpty { return "a suggestion suggests nothing" }
      texts.append(suggestion.text)
    }
    if texts.contains(where: {
      $0.unicodeScalars.contains { $0.properties.generalCategory == .control && $0 != "\n" }
    }) {
      return "a control character reaches the terminal"
    }
    return nil
  }
}
