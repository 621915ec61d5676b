/// Why a failure of netopt does not count.
enum Excuse {
  /// The request must not be repeated, bytes of it were or may have been written, and no server refused it.
  case unrepeatable
  /// The response had begun and did not arrive completely.
  case broken
}

extension Call.Failure {
  /// The reason why a failure does not count; `nil` when the failure counts.
  ///
  /// - Parameters:
  ///   - id: the id of the request.
  ///   - arrivals: the requests that the servers received.
  ///   - breaksAnswers: whether a fault that the call may have met breaks responses.
  func excuse(of id: String, _ traffic: Traffic, _ arrivals: Arrivals, breaksAnswers: Bool) -> Excuse? {
    // A request that arrived was written, whatever netopt reports. A refused request could have been sent
    // again, unless another server processed it.
    let isProcessed = arrivals.processed[id, default: 0] > 0
    let isRefused = arrivals.refused.contains(id) && !isProcessed
    if breaksAnswers, hadHead { return .broken }
    if !traffic.mayBeRepeated, isProcessed || mayBeWritten, !isRefused { return .unrepeatable }
    return nil
  }

  /// Whether the message contains one of the words that name a fault.
  func names(oneOf causes: some Sequence<String>) -> Bool {
    let message = message.lowercased()
    return causes.contains { message.contains($0) }
  }
}
