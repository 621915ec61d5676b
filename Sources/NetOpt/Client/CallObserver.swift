public import NetOptCore
import Synchronization

/// Observes calls but cannot change them. The client calls each method in the task of the caller or in the
/// task that reads the body, and never on the event loop. The end of a body that the caller has released may
/// be reported in a task of the client, also shortly after a shutdown. `id` is the number of the call in this
/// client. Every method has a default that does nothing.
public protocol CallObserver: Sendable {
  /// A call begins.
  func callWillStart(_ id: UInt64, _ request: NetOptRequest)
  /// An attempt failed, and the client will send the request again.
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
  /// The call or its body failed. The error is `cancelled` when the program releases a body that arrives no
  /// further.
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

/// Reports each call to the observers, from its start to the end of its body.
///
/// This interceptor calls the redirect interceptor itself, instead of having it as the next link of the
/// chain. So a waiting call has one async frame for both.
struct EventInterceptor: Interceptor {
  let observers: [any CallObserver]
  /// Follows the redirects of each call.
  let redirect: RedirectInterceptor

  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
  {
    let call = ObservedCall(id: next.context.id, observers: observers)
    call.willStart(request)
    do throws(NetOptError) {
      return call.didReceiveHead(try await redirect.intercept(request, next: next), to: request.method)
    } catch {
      call.bodyDidFail(error)
      throw error
    }
  }
}

/// Reports the events of one call to the observers. Three methods are not inlined, because their local
/// variables would enlarge the frame of every waiting call.
private struct ObservedCall: BodyEndObserver {
  let id: UInt64
  let observers: [any CallObserver]

  @inline(never)
  func willStart(_ request: NetOptRequest) {
    for observer in observers { observer.callWillStart(id, request) }
  }

  /// Reports that the head of the response has arrived.
  ///
  /// - Returns: the response, with a body that reports its end.
  @inline(never)
  func didReceiveHead(
    _ response: consuming NetOptResponse, to method: NetOptRequest.Method
  ) -> NetOptResponse {
    for observer in observers { observer.callDidReceiveHead(id, response) }
    if !response.body.attachObserver(self) {
      let hasContent =
        method != .head && !ResponseHead.hasNoBody(response.status)
        && response.head.first("Content-Length") != "0"
      response.body = ResponseBody(ObservedBody(response.body, self, hasContent: hasContent))
    }
    return response
  }

  @inline(never)
  func bodyDidEnd(_ timings: Timings) { for observer in observers { observer.callDidFinish(id, timings) } }

  func bodyDidFail(_ error: NetOptError) { for observer in observers { observer.callDidFail(id, error) } }
}

/// A body that passes chunks on, and reports its end, its failure or its release to the observers once.
private final class ObservedBody: BodySource {
  private let base: ResponseBody
  private let call: ObservedCall
  /// Whether the response can have content (RFC 9110, section 6.4.1). Without content there is nothing to
  /// read, so the program may release the body at any time.
  private let hasContent: Bool
  /// Whether the end of the body has been reported.
  private let isOver = Atomic(false)

  init(_ base: ResponseBody, _ call: ObservedCall, hasContent: Bool) {
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
