import NetOptCore

/// Plans the route, and tells the ranking how it went.
///
/// What is needed before and after is in functions that are not inlined: its room would be kept by every call that waits.
struct RouteInterceptor: Interceptor {
  let router: Router
  let prober: Prober
  let upkeep: Upkeep
  /// What sends the request, unless other links come first. A link of its own would cost each call 450 instructions, and its
  /// frame while it waits.
  var transport: (any Transport)?
  /// Whether its calls are the caller's, for which endpoints are probed. What a client does for itself waits for no probe, and
  /// has none begin or go on.
  var isUse = true

  @inline(__always)
  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
  {
    if isUse, !prober.isSettled(request) {
      await prober.waitForFirstAnswer(to: request, until: next.deadline)
    }
    let plan = try plan(request, next.attempt)
    let next = next.along(plan)
    do throws(NetOptError) {
      let response =
        if let transport {
          try await transport.execute(request, along: plan, in: next.context)
        } else {
          try await next.proceed(request)
        }
      learn(from: response, to: request, next)
      return response
    } catch {
      throw learn(from: error, next)
    }
  }

  // Not inlined, like what learns: what it needs room for would be kept by every call that waits.
  @inline(never)
  private func plan(_ request: NetOptRequest, _ attempt: Attempt?) throws(NetOptError) -> RoutePlan {
    let plan = try router.plan(for: request, attempt, isUse: isUse)
    // Nothing is probed for a request that goes where it was told to.
    if isUse, plan.directOff == nil, request.options.routing == .automatic { upkeep.requestWasPlanned() }
    return plan
  }

  @inline(never)
  private func learn(from response: NetOptResponse, to request: NetOptRequest, _ chain: InterceptorChain) {
    // Once: each time it is asked for, a response gives a copy.
    let route = response.route
    router.record(response, by: route, to: request, along: chain.plan, started: chain.started)
    if route.hasFailures { upkeep.lookAgain() }
  }

  @inline(never)
  private func learn(from error: NetOptError, _ chain: InterceptorChain) -> NetOptError {
    let told = router.record(error, along: chain.plan, started: chain.started)
    // Now that it is known when its circuit is due.
    if error.route != nil { upkeep.lookAgain() }
    return told
  }
}

extension RouteReport {
  /// Whether an endpoint did not do what was expected of it.
  fileprivate var hasFailures: Bool {
    legs.contains { leg in
      switch leg.outcome {
      case .failed, .cancelled: true
      case .won, .lost: false
      }
    }
  }
}

/// The end of the chain.
struct TransportInterceptor: Interceptor {
  let transport: any Transport

  @inline(__always)
  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
  {
    guard let plan = next.context.plan else {
      throw NetOptError(
        .invalidConfiguration, phase: .send, "the request reached the transport without a route")
    }
    return try await transport.execute(request, along: plan, in: next.context)
  }
}
