/// What a failure of netopt's is, besides one that counts.
enum Excuse {
  /// The request must not be repeated, something of it was or may have been written, and nobody refused it.
  case unrepeatable
  /// The answer had begun, and did not come whole.
  case broken
}

extension Call.Failure {
  /// Why a failure does not count, if it does not.
  ///
  /// - Parameters:
  ///   - id: the request's.
  ///   - arrivals: what servers received.
  ///   - breaksAnswers: whether a fault that the call may have met does.
  func excuse(of id: String, _ traffic: Traffic, _ arrivals: Arrivals, breaksAnswers: Bool) -> Excuse? {
    // A request that arrived was written, whatever netopt says. One that was refused could have been sent again, unless it was processed
    // elsewhere.
    let isProcessed = arrivals.processed[id, default: 0] > 0
    let isRefused = arrivals.refused.contains(id) && !isProcessed
    if breaksAnswers, hadHead { return .broken }
    if !traffic.mayBeRepeated, isProcessed || mayBeWritten, !isRefused { return .unrepeatable }
    return nil
  }

  /// Whether the message has one of a fault's words.
  func names(oneOf causes: some Sequence<String>) -> Bool {
    let message = message.lowercased()
    return causes.contains { message.contains($0) }
  }
}
