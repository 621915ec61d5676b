public import NetOptCore

/// Observes calls but cannot change them. The client calls each method in the task of the caller or in the
/// task that reads the body, and never on the event loop. The end of a body that the caller has released may
/// be reported in a task of the client, also shortly after a shutdown. `id` is the number of the call in this
/// client. Every method has a default that does nothing. `CallRecordObserver` gets all of a call at once.
public protocol CallObserver: Sendable {
  /// A call begins.
  func callWillStart(_ id: UInt64, _ request: NetOptRequest)
  /// An attempt failed, and the client will make another one after a wait, unless the call ends before.
  ///
  /// - Parameters:
  ///   - id: the number of the call.
  ///   - attempt: the failed attempt.
  ///   - delay: the wait before the next attempt.
  func callWillRetry(_ id: UInt64, _ attempt: AttemptReport, after delay: Duration)
  /// The first attempt is slow, and the client sends a hedge to another endpoint.
  ///
  /// - Parameters:
  ///   - id: the number of the call.
  ///   - delay: how long the first attempt has waited for a response.
  func callWillHedge(_ id: UInt64, after delay: Duration)
  /// The head of the final response has arrived, after all redirects.
  func callDidReceiveHead(_ id: UInt64, _ response: NetOptResponse)
  /// The caller has read the body to its end, or the response has no body. Or the caller has released a body
  /// that had arrived in full, or whose small rest arrived soon after.
  func callDidFinish(_ id: UInt64, _ timings: Timings)
  /// The call or its body failed. If the program releases the body and the client does not receive the rest,
  /// the error is `cancelled`.
  func callDidFail(_ id: UInt64, _ error: NetOptError)
}

extension CallObserver {
  /// Does nothing.
  public func callWillStart(_ id: UInt64, _ request: NetOptRequest) {}
  /// Does nothing.
  public func callWillRetry(_ id: UInt64, _ attempt: AttemptReport, after delay: Duration) {}
  /// Does nothing.
  public func callWillHedge(_ id: UInt64, after delay: Duration) {}
  /// Does nothing.
  public func callDidReceiveHead(_ id: UInt64, _ response: NetOptResponse) {}
  /// Does nothing.
  public func callDidFinish(_ id: UInt64, _ timings: Timings) {}
  /// Does nothing.
  public func callDidFail(_ id: UInt64, _ error: NetOptError) {}
}

/// An observer that gets request, response and durations of each call at once, when the call has ended. It is
/// one of `ClientConfiguration.observers`. An observer that needs nothing else needs only this method:
///
/// ```swift
/// struct AccessLog: CallRecordObserver {
///   func callDidEnd(_ call: CallRecord) { print(call.json) }
/// }
/// ```
public protocol CallRecordObserver: CallObserver {
  /// The call has ended. Comes once for each call, after `callDidFinish` or `callDidFail` of all observers.
  func callDidEnd(_ call: CallRecord)
}
