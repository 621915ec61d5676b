/// A component that every call passes through. An interceptor may change the request, respond to it without
/// the network, change the response, or repeat the call. Its code is in the order of execution: first what it
/// does with the request, then `next.proceed`, then what it does with the response.
public protocol Interceptor: Sendable {
  /// Handles a call.
  ///
  /// - Parameters:
  ///   - request: the request.
  ///   - next: the rest of the chain. Call `next.proceed` once to send the request, once for each attempt to
  ///     repeat the request, or not at all to respond without the network.
  /// - Returns: the response.
  /// - Throws: `NetOptError` when the call fails.
  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
}

/// The interceptors of a call that come after one interceptor. The chain is a value, so an interceptor may
/// call `proceed` several times.
public struct InterceptorChain: Sendable {
  /// What all chains of a call share. It is a separate object because a chain must be small: while a call
  /// waits, the frame of each of its interceptors holds a chain.
  @usableFromInline
  final class Call: Sendable {
    /// All interceptors of the call, outermost first.
    @usableFromInline let links: [any Interceptor]
    @usableFromInline let context: CallContext

    init(_ links: [any Interceptor], _ context: CallContext) {
      self.links = links
      self.context = context
    }
  }

  /// The interceptors and the context of the call.
  @usableFromInline var call: Call
  /// The plan for the rest of the chain; `nil` before planning. It takes precedence over the plan in
  /// `call.context`.
  @usableFromInline package private(set) var plan: RoutePlan?
  /// The index in `call.links` of the interceptor that `proceed` calls.
  @usableFromInline let position: Int

  /// The number of the call within its client. `CallObserver` reports the same number.
  public var callID: UInt64 { call.context.id }

  /// What is known about the call besides the request, without a plan. Cheaper than `context`.
  package var contextWithoutPlan: CallContext { call.context }

  /// What the interceptors know about the call besides the request: `call.context` with the plan of this
  /// chain.
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

  /// When the call must have ended; `nil` without a limit.
  package var deadline: MonotonicInstant? { call.context.deadline }

  /// When the call began.
  package var started: MonotonicInstant { call.context.started }

  /// The trace of the call; `nil` when the client exports no traces.
  package var trace: CallTrace? { call.context.trace }

  /// The attempt to which this part of the call belongs. `nil` for a first attempt without a hedge.
  package var attempt: Attempt? { call.context.attempt }

  /// Creates a chain of interceptors, outermost first. The last interceptor must respond without calling
  /// `next`.
  package init(_ links: [any Interceptor], context: CallContext) {
    call = Call(links, context)
    plan = context.plan
    position = 0
  }

  /// Creates the part of a chain that begins at a position.
  @usableFromInline init(_ chain: InterceptorChain, at position: Int) {
    call = chain.call
    plan = chain.plan
    self.position = position
  }

  /// Returns this chain with `plan` as the plan for its interceptors.
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
