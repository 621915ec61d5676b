/// Why a failed call of netopt does not count as a violation of the kind `failed`.
enum Excuse {
  /// netopt could not know whether a server had processed the request, and the request must not be repeated.
  /// Bytes of the request were or may have been written, and no server refused the request.
  case unrepeatable
  /// The response had begun, and the fault kept the rest of it from arriving.
  case broken
}

extension Call.Failure {
  /// Returns the reason why the failure does not count; `nil` when the failure counts.
  ///
  /// - Parameters:
  ///   - id: the id of the request that failed.
  ///   - traffic: the kind of this request.
  ///   - arrivals: the requests that the servers received.
  ///   - breaksAnswers: whether a fault that the call may have met breaks off responses that have begun.
  func excuse(of id: String, _ traffic: Traffic, _ arrivals: Arrivals, breaksAnswers: Bool) -> Excuse? {
    // A request that a server processed was written, even if netopt reports that it was not. A request that a
    // server refused could have been sent again, unless another server processed it.
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
