public import NetOptCore
import Synchronization

/// Sees calls, without the power to change them. Called in the task of the caller, or of the one who reads the body;
/// never on the event loop. Every method has a default that does nothing.
public protocol CallObserver: Sendable {
  /// A call begins.
  func callWillStart(_ id: UInt64, _ request: HTTPRequest)
  /// The head of the response is there, redirects followed.
  func callDidReceiveHead(_ id: UInt64, _ response: HTTPResponse)
  /// The body has been read to its end.
  func callDidFinish(_ id: UInt64, _ timings: Timings)
  /// The call failed, or its body did; a body that is let go before its end is `cancelled`.
  func callDidFail(_ id: UInt64, _ error: NetOptError)
}

extension CallObserver {
  /// Does nothing.
  public func callWillStart(_ id: UInt64, _ request: HTTPRequest) {}
  /// Does nothing.
  public func callDidReceiveHead(_ id: UInt64, _ response: HTTPResponse) {}
  /// Does nothing.
  public func callDidFinish(_ id: UInt64, _ timings: Timings) {}
  /// Does nothing.
  public func callDidFail(_ id: UInt64, _ error: NetOptError) {}
}

/// Tells observers of a call, from its start to the end of its body.
struct EventInterceptor: Interceptor {
  let observers: [any CallObserver]

  func intercept(_ request: HTTPRequest, next: InterceptorChain) async throws(NetOptError) -> HTTPResponse {
    let id = next.context.id
    for observer in observers { observer.callWillStart(id, request) }
    do throws(NetOptError) {
      var response = try await next.proceed(request)
      for observer in observers { observer.callDidReceiveHead(id, response) }
      response.body = ResponseBody(ObservedBody(response.body, id, observers))
      return response
    } catch {
      for observer in observers { observer.callDidFail(id, error) }
      throw error
    }
  }
}

/// A body that tells observers of its end.
private final class ObservedBody: BodySource {
  private let base: ResponseBody
  private let id: UInt64
  private let observers: [any CallObserver]
  private let isOver = Atomic(false)

  init(_ base: ResponseBody, _ id: UInt64, _ observers: [any CallObserver]) {
    self.base = base
    self.id = id
    self.observers = observers
  }

  deinit {
    end {
      $0.callDidFail(
        id, NetOptError(.cancelled, phase: .receive, "the body was let go before its end was read"))
    }
  }

  var timings: Timings { base.timings }

  func next() async throws(NetOptError) -> [UInt8]? {
    var iterator = base.makeAsyncIterator()
    do throws(NetOptError) {
      let chunk = try await iterator.next()
      if chunk == nil { end { $0.callDidFinish(id, timings) } }
      return chunk
    } catch {
      end { $0.callDidFail(id, error) }
      throw error
    }
  }

  private func end(_ tell: (any CallObserver) -> Void) {
    guard !isOver.exchange(true, ordering: .relaxed) else { return }
    for observer in observers { tell(observer) }
  }
}
