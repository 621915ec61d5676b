public import NetOptCore
import Synchronization

/// Sees calls, without the power to change them. Called in the task of the caller, or of the one who reads the body;
/// never on the event loop. Every method has a default that does nothing.
public protocol CallObserver: Sendable {
  /// A call begins.
  func callWillStart(_ id: UInt64, _ request: NetOptRequest)
  /// An attempt did not go well, and another one is made.
  ///
  /// - Parameters:
  ///   - id: the call's number.
  ///   - attempt: the one that did not.
  ///   - delay: how long the next one is waited with.
  func callWillRetry(_ id: UInt64, _ attempt: AttemptReport, after delay: Duration)
  /// The first attempt is slow, and a copy is sent beside it.
  ///
  /// - Parameters:
  ///   - id: the call's number.
  ///   - delay: for how long the first one had no answer.
  func callWillHedge(_ id: UInt64, after delay: Duration)
  /// The head of the response is there, redirects followed.
  func callDidReceiveHead(_ id: UInt64, _ response: NetOptResponse)
  /// The body has been read to its end.
  func callDidFinish(_ id: UInt64, _ timings: Timings)
  /// The call failed, or its body did; a body that is let go before its end is `cancelled`.
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

/// Tells observers of a call, from its start to the end of its body.
///
/// What it stands around is not the next link of the chain but a part of it: see `RetryInterceptor`.
struct EventInterceptor: Interceptor {
  let observers: [any CallObserver]
  let redirect: RedirectInterceptor

  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
  {
    let call = ObservedCall(id: next.context.id, observers: observers)
    call.willStart(request)
    do throws(NetOptError) {
      return call.didReceiveHead(try await redirect.intercept(request, next: next))
    } catch {
      call.bodyDidFail(error)
      throw error
    }
  }
}

/// Tells observers of one call. Not inlined: what it needs room for would be kept by every call that waits.
private struct ObservedCall: BodyEndObserver {
  let id: UInt64
  let observers: [any CallObserver]

  @inline(never)
  func willStart(_ request: NetOptRequest) {
    for observer in observers { observer.callWillStart(id, request) }
  }

  /// - Returns: the response, with a body that tells how it ends.
  @inline(never)
  func didReceiveHead(_ response: consuming NetOptResponse) -> NetOptResponse {
    for observer in observers { observer.callDidReceiveHead(id, response) }
    if !response.body.isObserved(by: self) {
      response.body = ResponseBody(ObservedBody(response.body, self))
    }
    return response
  }

  @inline(never)
  func bodyDidEnd(_ timings: Timings) { for observer in observers { observer.callDidFinish(id, timings) } }

  func bodyDidFail(_ error: NetOptError) { for observer in observers { observer.callDidFail(id, error) } }
}

/// A body that streams, and tells of its end.
private final class ObservedBody: BodySource {
  private let base: ResponseBody
  private let call: ObservedCall
  private let isOver = Atomic(false)

  init(_ base: ResponseBody, _ call: ObservedCall) {
    self.base = base
    self.call = call
  }

  deinit { if beginsEnd() { call.bodyWasLetGo() } }

  var timings: Timings { base.timings }

  func next() async throws(NetOptError) -> [UInt8]? {
    var iterator = base.makeAsyncIterator()
    do throws(NetOptError) {
      let chunk = try await iterator.next()
      if chunk == nil, beginsEnd() { call.bodyDidEnd(timings) }
      return chunk
    } catch {
      if beginsEnd() { call.bodyDidFail(error) }
      throw error
    }
  }

  private func beginsEnd() -> Bool { !isOver.exchange(true, ordering: .relaxed) }
}
