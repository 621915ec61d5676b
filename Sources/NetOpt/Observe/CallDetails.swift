import FoundationEssentials
import NetOptCore

/// What observers and traces need of a call at its end.
final class CallDetails: Sendable {
  private let request: NetOptRequest
  /// The response without its body: the body holds this object.
  private let response: NetOptResponse?
  private let id: UInt64
  private let started: MonotonicInstant
  private let trace: CallTrace?
  private let observers: [any CallObserver]
  private let tracer: Tracer?

  init(
    _ request: NetOptRequest, _ response: NetOptResponse?, _ chain: InterceptorChain,
    _ observers: [any CallObserver], _ tracer: Tracer?
  ) {
    self.request = request
    var response = response
    response?.body = ResponseBody([])
    self.response = response
    id = chain.callID
    started = chain.started
    trace = chain.trace
    self.observers = observers
    self.tracer = tracer
  }

  /// Reports the end of the call.
  ///
  /// - Parameters:
  ///   - error: why the call or its body failed; `nil` if the body ended.
  ///   - nanoseconds: the duration of the call.
  func ended(_ timings: Timings, _ error: NetOptError?, after nanoseconds: Int64) {
    if let trace, trace.context.isSampled, let tracer {
      tracer.spans.append(
        Span(
          trace.context, parentID: trace.parentID, epoch: trace.epoch, .call, from: started,
          to: tracer.timeSource.now(), SpanRequest(request),
          SpanResult(
            status: response?.status, version: response?.version, remote: response?.remote,
            cache: response?.cacheStatus.outcome, error: error, callStarted: started)))
    }
    guard !observers.isEmpty else { return }
    var response = response
    response?.body = ResponseBody([], timings: timings)
    let record = CallRecord(
      id: id, request: request, response: response, timings: timings, duration: .nanoseconds(nanoseconds),
      ended: Date(), error: error, trace: trace?.context)
    for observer in observers {
      if let error { observer.callDidFail(id, error) } else { observer.callDidFinish(id, timings) }
      observer.callDidEnd(record)
    }
  }
}
