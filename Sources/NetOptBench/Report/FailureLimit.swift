/// The limit on the share of failed requests above which reports do not recommend a target. Fast responses do
/// not make up for missing ones.
enum FailureLimit {
  /// The tolerated share of failed requests.
  static let share = 0.05
  /// The confidence required to say that the true share exceeds the limit.
  static let confidence = 0.95

  /// Whether the failures significantly exceed the tolerated share: the lower end of Wilson's interval is
  /// above the limit.
  static func isExceeded(failures: Int, of requests: Int) -> Bool {
    requests > 0
      && WilsonInterval.interval(failures, of: requests, confidence: confidence).lowerBound > share
  }
}
