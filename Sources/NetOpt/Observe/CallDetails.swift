import FoundationEssentials
import NetOptCore

/// What records and traces need of a call at its end. Clients without both make none.
final class CallDetails: Sendable {
  /// Stands for the bodies of responses. Nobody reads it.
  private static let noBody = ResponseBody([])

  let request: NetOptRequest
  /// The response without its body and timings: the body holds this object.
  let response: NetOptResponse?
  let id: UInt64
  private let started: MonotonicInstant
  private let trace: CallTrace?
  private let observers: [any CallRecordObserver]
  private let tracer: Tracer?

  init(
    _ request: NetOptRequest, _ response: NetOptResponse?, _ chain: InterceptorChain,
    _ observers: [any CallRecordObserver], _ tracer: Tracer?
  ) {
    self.request = request
    var response = response
    response?.body = Self.noBody
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
    let record = CallRecord(
      details: self, timings: timings, nanoseconds: nanoseconds, ended: Date(), error: error,
      trace: trace?.context)
    for observer in observers { observer.callDidEnd(record) }
  }
}
