import NetOptCore
import Synchronization

/// Reports each call to the observers, the metrics and the traces, from its start to the end of its body.
///
/// The client calls this interceptor itself, and it calls the redirect interceptor itself. Neither is a link
/// of the chain. So a waiting call has one async frame for all three.
///
/// Most clients have no observers. Each loop over them is behind a check, because even an empty loop retains its
/// array.
struct EventInterceptor {
  let observation: CallObservation
  /// Follows the redirects of each call.
  let redirect: RedirectInterceptor

  @inline(__always)
  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
  {
    if !observation.observers.isEmpty { willStart(request, next) }
    do throws(NetOptError) {
      return didReceiveHead(try await redirect.intercept(request, next: next), to: request, next)
    } catch {
      didFail(error, request, next)
      throw error
    }
  }

  // These methods are not inlined, because their local variables would enlarge the frame of every waiting
  // call.

  @inline(never)
  private func willStart(_ request: NetOptRequest, _ chain: InterceptorChain) {
    for observer in observation.observers { observer.callWillStart(chain.callID, request) }
  }

  /// Reports that the head of the response has arrived.
  ///
  /// - Returns: the response, with a body that reports its end.
  @inline(never)
  private func didReceiveHead(
    _ response: consuming NetOptResponse, to request: NetOptRequest, _ chain: InterceptorChain
  ) -> NetOptResponse {
    if !observation.observers.isEmpty {
      for observer in observation.observers { observer.callDidReceiveHead(chain.callID, response) }
    }
    let call = answered(request, response, chain)
    if !response.body.attachObserver(call) {
      let hasContent =
        request.method != .head && !ResponseHead.hasNoBody(response.status)
        && response.head.first("Content-Length") != "0"
      response.body = ResponseBody(ObservedBody(response.body, call, hasContent: hasContent))
    }
    return response
  }

  @inline(never)
  private func didFail(_ error: NetOptError, _ request: NetOptRequest, _ chain: InterceptorChain) {
    answered(request, nil, chain).bodyDidFail(error)
  }

  /// Makes the object that reports the end of a call.
  ///
  /// - Parameter response: the response; `nil` when the call failed without one.
  private func answered(
    _ request: NetOptRequest, _ response: NetOptResponse?, _ chain: InterceptorChain
  ) -> AnsweredCall {
    var details: CallDetails?
    if !observation.recordObservers.isEmpty || chain.trace?.context.isSampled == true {
      details = CallDetails(request, response, chain)
    }
    let facts = CallMetrics.Call(
      request, started: chain.started,
      response.map { observation.metrics.response($0, to: chain.started) })
    return AnsweredCall(chain.callID, facts, details, observation)
  }
}

/// A call whose response has a body that has not ended, or that has none.
private final class AnsweredCall: BodyEndObserver {
  private let id: UInt64
  private let facts: CallMetrics.Call
  /// What records and traces need; `nil` without both.
  private let details: CallDetails?
  private let observation: CallObservation

  init(
    _ id: UInt64, _ facts: CallMetrics.Call, _ details: CallDetails?, _ observation: CallObservation
  ) {
    self.id = id
    self.facts = facts
    self.details = details
    self.observation = observation
  }

  func bodyDidEnd(_ timings: Timings) {
    let duration = observation.metrics.ended(facts, timings)
    if !observation.observers.isEmpty {
      for observer in observation.observers { observer.callDidFinish(id, timings) }
    }
    details?.ended(timings, nil, after: duration, to: observation)
  }

  func bodyDidFail(_ error: NetOptError) {
    let duration = observation.metrics.failed(facts, error)
    for observer in observation.observers { observer.callDidFail(id, error) }
    details?.ended(Timings(), error, after: duration, to: observation)
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
