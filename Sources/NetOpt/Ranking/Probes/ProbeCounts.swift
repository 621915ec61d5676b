import NetOptCore

/// How many samples of probes ended in each way, since the client was made.
struct ProbeCounts: Hashable, Sendable {
  /// The sample succeeded, or a pooled connection was open.
  var succeeded = 0
  /// The sample failed, and the failure is one of the endpoint. With `icmp`: no reply came.
  var failed = 0
  /// The result says nothing about the endpoint (`LegError.isInconclusive`).
  var inconclusive = 0

  /// Counts a sample.
  mutating func add(_ result: Result<ConnectReport, LegError>) {
    switch result {
    case .success: succeeded += 1
    case .failure(let error): if error.isInconclusive { inconclusive += 1 } else { failed += 1 }
    }
  }
}
