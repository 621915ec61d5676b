import NetOptCore
import Synchronization

/// Reports each call to the observers and the metrics, from its start to the end of its body.
///
/// This interceptor calls the redirect interceptor itself, instead of having it as the next link of the
/// chain. So a waiting call has one async frame for both.
struct EventInterceptor: Interceptor {
  let observers: [any CallObserver]
  let metrics: CallMetrics
  /// Follows the redirects of each call.
  let redirect: RedirectInterceptor

  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
  {
    let call = StartedCall(id: next.context.id, observers: observers, metrics: metrics)
    let started = next.context.started
    call.willStart(request)
    do throws(NetOptError) {
      return call.didReceiveHead(try await redirect.intercept(request, next: next), to: request, started)
    } catch {
      call.didFail(error, request, started)
      throw error
    }
  }
}

/// A call that has no response yet. Its methods are not inlined, because their local variables would enlarge
/// the frame of every waiting call.
private struct StartedCall {
  let id: UInt64
  let observers: [any CallObserver]
  let metrics: CallMetrics

  @inline(never)
  func willStart(_ request: NetOptRequest) {
    for observer in observers { observer.callWillStart(id, request) }
  }

  /// Reports that the head of the response has arrived.
  ///
  /// - Returns: the response, with a body that reports its end.
  @inline(never)
  func didReceiveHead(
    _ response: consuming NetOptResponse, to request: NetOptRequest, _ started: MonotonicInstant
  ) -> NetOptResponse {
    for observer in observers { observer.callDidReceiveHead(id, response) }
    let facts = CallMetrics.Call(request, started: started, metrics.response(response, to: started))
    let call = AnsweredCall(id: id, facts, observers, metrics)
    if !response.body.attachObserver(call) {
      let hasContent =
        request.method != .head && !ResponseHead.hasNoBody(response.status)
        && response.head.first("Content-Length") != "0"
      response.body = ResponseBody(ObservedBody(response.body, call, hasContent: hasContent))
    }
    return response
  }

  @inline(never)
  func didFail(_ error: NetOptError, _ request: NetOptRequest, _ started: MonotonicInstant) {
    metrics.failed(CallMetrics.Call(request, started: started, nil), error)
    for observer in observers { observer.callDidFail(id, error) }
  }
}

/// A call whose response has a body that has not ended.
private final class AnsweredCall: BodyEndObserver {
  private let id: UInt64
  private let facts: CallMetrics.Call
  private let observers: [any CallObserver]
  private let metrics: CallMetrics

  init(id: UInt64, _ facts: CallMetrics.Call, _ observers: [any CallObserver], _ metrics: CallMetrics) {
    (self.id, self.facts, self.observers, self.metrics) = (id, facts, observers, metrics)
  }

  func bodyDidEnd(_ timings: Timings) {
    metrics.ended(facts, timings)
    for observer in observers { observer.callDidFinish(id, timings) }
  }

  func bodyDidFail(_ error: NetOptError) {
    metrics.failed(facts, error)
    for observer in observers { observer.callDidFail(id, error) }
  }
}

/// A body that passes chunks on, and reports its end, its failure or its release to the observers once.
private final class ObservedBody: BodySource {
  private let base: ResponseBody
  private let call: AnsweredCall
  /// Whether the response can have content (RFC 9110, section 6.4.1). Without content there is nothing to
  /// read, so the program may release the body at any time.
  private let hasContent: Bool
  /// Whether the end of the body has been reported.
  private let isOver = Atomic(false)

  init(_ base: ResponseBody, _ call: AnsweredCall, hasContent: Bool) {
    self.base = base
    self.call = call
    self.hasContent = hasContent
  }

  deinit {
    if markEnded() { hasContent ? base.tellEnd(to: call) : call.bodyDidEnd(timings) }
  }

  var timings: Timings { base.timings }

  func next() async throws(NetOptError) -> [UInt8]? {
    var iterator = base.makeAsyncIterator()
    do throws(NetOptError) {
      let chunk = try await iterator.next()
      if chunk == nil, markEnded() { call.bodyDidEnd(timings) }
      return chunk
    } catch {
      if markEnded() { call.bodyDidFail(error) }
      throw error
    }
  }

  /// Returns true on the first call only.
  private func markEnded() -> Bool { !isOver.exchange(true, ordering: .relaxed) }
}
