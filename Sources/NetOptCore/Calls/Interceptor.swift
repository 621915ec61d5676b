/// A component that wraps each call. An interceptor may change the request, respond to it without the
/// network, change the response, or repeat the call. Its code reads in order: the part before the call,
/// `next.proceed`, the part after the call.
public protocol Interceptor: Sendable {
  /// Handles a call.
  ///
  /// - Parameters:
  ///   - request: the request.
  ///   - next: the rest of the chain. Call it not at all, once, or once for each attempt.
  /// - Returns: the response.
  /// - Throws: `NetOptError` when the call fails.
  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
}

/// The rest of the interceptor chain, as seen by one interceptor. The chain is a value, so an interceptor may
/// call it several times.
public struct InterceptorChain: Sendable {
  /// The state shared by all interceptors of a call. A waiting call holds a chain in each interceptor's
  /// frame, so a chain must be small.
  @usableFromInline
  final class Call: Sendable {
    @usableFromInline let links: [any Interceptor]
    @usableFromInline let context: CallContext

    init(_ links: [any Interceptor], _ context: CallContext) {
      self.links = links
      self.context = context
    }
  }

  @usableFromInline var call: Call
  /// The plan made for this part of the chain. Takes the place of the plan in the call's context.
  @usableFromInline package private(set) var plan: RoutePlan?
  @usableFromInline let position: Int

  /// The number of the call within its client. `CallObserver` reports the same number.
  public var callID: UInt64 { call.context.id }

  /// The call's context: everything about the call except the request.
  package var context: CallContext {
    get {
      var context = call.context
      if let plan { context.plan = plan }
      return context
    }
    set {
      plan = newValue.plan
      call = Call(call.links, newValue)
    }
  }

  /// The call's deadline, or `nil`.
  package var deadline: MonotonicInstant? { call.context.deadline }

  /// When the call began.
  package var started: MonotonicInstant { call.context.started }

  /// The attempt of a call with several attempts, or `nil`.
  package var attempt: Attempt? { call.context.attempt }

  /// Creates a chain of interceptors, outermost first. The last interceptor must respond without calling
  /// `next`.
  package init(_ links: [any Interceptor], context: CallContext) {
    call = Call(links, context)
    plan = context.plan
    position = 0
  }

  @usableFromInline init(_ chain: InterceptorChain, at position: Int) {
    call = chain.call
    plan = chain.plan
    self.position = position
  }

  /// Returns this chain with another plan.
  package func along(_ plan: RoutePlan) -> InterceptorChain {
    var chain = self
    chain.plan = plan
    return chain
  }

  /// Passes the request to the rest of the chain.
  ///
  /// - Throws: the error of the rest of the chain; `NetOptError.Code.invalidConfiguration` if the rest is
  ///   empty.
  @inlinable @inline(__always)
  public func proceed(_ request: NetOptRequest) async throws(NetOptError) -> NetOptResponse {
    guard position < call.links.count else {
      throw NetOptError(
        .invalidConfiguration, phase: .send, "the interceptor chain ends without a transport that answers")
    }
    return try await call.links[position].intercept(request, next: InterceptorChain(self, at: position + 1))
  }
}
