/// Something that stands around each call: it may change the request, answer it itself, change the answer, or call
/// again. Written so that the file reads from top to bottom: before, `next.proceed`, after.
public protocol Interceptor: Sendable {
  /// Handles a call.
  ///
  /// - Parameters:
  ///   - request: what is asked for.
  ///   - next: the rest of the chain. Call it never, once, or once per attempt.
  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
}

/// The part of a chain that lies below an interceptor. A value: it can be called again.
public struct InterceptorChain: Sendable {
  /// What all interceptors of a call have in common. A call that waits has a chain in each one's frame: that is small.
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
  /// The plan, which is not that of the call's context but made on the way.
  @usableFromInline package private(set) var plan: RoutePlan?
  @usableFromInline let position: Int

  /// The call's number among those of its client, as `CallObserver` has it.
  public var callID: UInt64 { call.context.id }

  /// What is known of the call besides the request.
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

  /// When the call has to be over, or `nil`.
  package var deadline: MonotonicInstant? { call.context.deadline }

  /// When the call began.
  package var started: MonotonicInstant { call.context.started }

  /// Which of several attempts of the call this is, when it is one of several.
  package var attempt: Attempt? { call.context.attempt }

  /// Makes a chain of interceptors, outermost first. The last one answers without calling `next`.
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

  /// The same chain for a call that takes a way.
  package func along(_ plan: RoutePlan) -> InterceptorChain {
    var chain = self
    chain.plan = plan
    return chain
  }

  /// Hands the request to the rest of the chain.
  ///
  /// - Throws: what the rest throws; `NetOptError.Code.invalidConfiguration` when there is no rest.
  @inlinable @inline(__always)
  public func proceed(_ request: NetOptRequest) async throws(NetOptError) -> NetOptResponse {
    guard position < call.links.count else {
      throw NetOptError(
        .invalidConfiguration, phase: .send, "the interceptor chain ends without a transport that answers")
    }
    return try await call.links[position].intercept(request, next: InterceptorChain(self, at: position + 1))
  }
}
