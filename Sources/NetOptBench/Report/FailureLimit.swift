/// The limit on the share of failed requests. Reports do not recommend a target above the limit, because fast
/// responses do not make up for missing ones.
enum FailureLimit {
  /// The share of failed requests that is tolerated.
  static let share = 0.05
  /// The confidence with which the true share must exceed `share`.
  static let confidence = 0.95

  /// Whether significantly more than `share` of the requests failed: the lower end of Wilson's interval is
  /// above `share`. Without requests the limit is not exceeded.
  static func isExceeded(failures: Int, of requests: Int) -> Bool {
    requests > 0
      && WilsonInterval.interval(failures, of: requests, confidence: confidence).lowerBound > share
  }
}
