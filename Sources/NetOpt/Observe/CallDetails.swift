import FoundationEssentials
import NetOptCore

/// The observers, the metrics and the tracer that learn of the calls of a client. All calls share one object.
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

/// The facts of a call that its record and its span need at its end. A call without a record and without a
/// sampled trace has no such object. The object does not refer to the observers. An observer may keep
/// records, which refer to this object, so such a reference would make a cycle.
final class CallDetails: Sendable {
  /// Stands for the bodies of responses. Nobody reads it.
  private static let noBody = ResponseBody([])

  let request: NetOptRequest
  /// The response with an empty body, and so without timings. The real body refers to this object, so a
  /// reference to the real body would make a cycle.
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

  /// Reports the end of the call: a span to the tracer if the trace is sampled, and a record to each observer
  /// that takes records.
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
