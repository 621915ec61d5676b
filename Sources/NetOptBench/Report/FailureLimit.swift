/// The limit on the share of failed requests. Reports do not recommend a target above the limit, because fast
/// responses do not make up for missing ones.
enum FailureLimit {
  /// The share of failed requests that reports tolerate, from 0 to 1.
  static let share = 0.05
  /// The confidence of the interval that `isExceeded` uses.
  static let confidence = 0.95

  /// Whether significantly more than `share` of the requests failed: the lower end of Wilson's confidence
  /// interval for the share of failures is above `share`. False without requests.
  static func isExceeded(failures: Int, of requests: Int) -> Bool {
    requests > 0
      && WilsonInterval.interval(failures, of: requests, confidence: confidence).lowerBound > share
  }
}
