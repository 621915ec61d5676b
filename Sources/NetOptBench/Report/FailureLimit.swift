/// From which share of failures on a target is not to be recommended: how fast it answers says little of a server that does not.
enum FailureLimit {
  /// The share that is tolerated.
  static let share = 0.05
  /// How sure it has to be that the true share is larger.
  static let confidence = 0.95

  /// Whether surely more than the tolerated share failed: the lower end of Wilson's interval lies above it.
  static func isExceeded(failures: Int, of requests: Int) -> Bool {
    requests > 0
      && WilsonInterval.interval(failures, of: requests, confidence: confidence).lowerBound > share
  }
}
