import FoundationEssentials
import NetOptCore

/// What looks at the calls of a client. One object for all calls.
final class CallObservation: Sendable {
  let observers: [any CallObserver]
  /// Those of `observers` that get a record of each call.
  let recordObservers: [any CallRecordObserver]
  let metrics: CallMetrics
  /// Records the spans of calls; `nil` when the client exports no traces.
  let tracer: Tracer?

  init(_ observers: [any CallObserver], _ metrics: CallMetrics, _ tracer: Tracer?) {
    self.observers = observers
    recordObservers = observers.compactMap { $0 as? any CallRecordObserver }
    self.metrics = metrics
    self.tracer = tracer
  }
}

/// What records and traces need of a call at its end. Clients without both make none. It does not hold the
/// observers: they may keep records.
final class CallDetails: Sendable {
  /// Stands for the bodies of responses. Nobody reads it.
  private static let noBody = ResponseBody([])

  let request: NetOptRequest
  /// The response without its body and timings: the body holds this object.
  let response: NetOptResponse?
  let id: UInt64
  private let started: MonotonicInstant
  private let trace: CallTrace?

  init(_ request: NetOptRequest, _ response: NetOptResponse?, _ chain: InterceptorChain) {
    self.request = request
    var response = response
    response?.body = Self.noBody
    self.response = response
    id = chain.callID
    started = chain.started
    trace = chain.trace
  }

  /// Reports the end of the call to those who take records and spans.
  ///
  /// - Parameters:
  ///   - error: why the call or its body failed; `nil` if the body ended.
  ///   - nanoseconds: the duration of the call.
  func ended(
    _ timings: Timings, _ error: NetOptError?, after nanoseconds: Int64, to observation: CallObservation
  ) {
    if let trace, trace.context.isSampled, let tracer = observation.tracer {
      tracer.spans.append(
        Span(
          trace.context, parentID: trace.parentID, epoch: trace.epoch, .call, from: started,
          to: tracer.timeSource.now(), SpanRequest(request),
          SpanResult(
            status: response?.status, version: response?.version, remote: response?.remote,
            cache: response?.cacheStatus.outcome, error: error, callStarted: started)))
    }
    guard !observation.recordObservers.isEmpty else { return }
    let record = CallRecord(
      details: self, timings: timings, nanoseconds: nanoseconds, ended: Date(), error: error,
      trace: trace?.context)
    for observer in observation.recordObservers { observer.callDidEnd(record) }
  }
}
