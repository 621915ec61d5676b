import NetOptCore

/// Plans the route of a request, and tells the planner the result.
///
/// The functions that run before and after the request are not inlined, because their local variables would
/// enlarge the frame of every waiting call.
struct RouteInterceptor: Interceptor {
  let router: Router
  let prober: Prober
  let backgroundProbes: BackgroundProbes
  /// The transport to which this interceptor passes the request; `nil` when more interceptors follow, the
  /// last of which is `TransportInterceptor`. A separate interceptor for the transport would cost each call
  /// 450 instructions, and one more async frame while the call waits.
  var transport: (any Transport)?
  /// Whether the requests are calls of the program, for which the client probes endpoints. If false, the
  /// client makes the requests itself to refresh the list. Such requests do not wait for probes, and do not
  /// start or prolong background probes.
  var countsAsUse = true

  @inline(__always)
  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
  {
    if countsAsUse, !prober.isSettled(request) {
      await prober.waitForFirstAnswer(to: request, until: next.deadline)
    }
    let plan = try plan(request, next.attempt)
    let next = next.along(plan)
    do throws(NetOptError) {
      let response =
        if let transport {
          try await transport.execute(request, along: plan, in: next.contextWithoutPlan)
        } else {
          try await next.proceed(request)
        }
      learn(from: response, to: request, next)
      return response
    } catch {
      throw learn(from: error, next)
    }
  }

  // Not inlined, like both `learn` functions: its local variables would enlarge the frame of every waiting
  // call.
  @inline(never)
  private func plan(_ request: NetOptRequest, _ attempt: Attempt?) throws(NetOptError) -> RoutePlan {
    let plan = try router.plan(for: request, attempt, countsAsUse: countsAsUse)
    // A request over DNS, through a proxy or to a pinned address needs no probes.
    if countsAsUse, plan.directOff == nil, request.options.routing == .automatic {
      backgroundProbes.requestWasPlanned()
    }
    return plan
  }

  /// Tells the planner that the request got a response.
  @inline(never)
  private func learn(from response: NetOptResponse, to request: NetOptRequest, _ chain: InterceptorChain) {
    // Read once, because each access to `response.route` makes a copy.
    let route = response.route
    router.record(response, by: route, to: request, along: chain.plan, started: chain.started)
    if route.hasFailures { backgroundProbes.recheckDueTimes() }
  }

  /// Tells the planner that the request failed. Returns the error for the caller, whose message may name a
  /// suspected cause.
  @inline(never)
  private func learn(from error: NetOptError, _ chain: InterceptorChain) -> NetOptError {
    let reported = router.record(error, along: chain.plan, started: chain.started)
    // The failure may have opened a circuit breaker, and its endpoint may be due for a probe earlier than any
    // other.
    if error.route != nil { backgroundProbes.recheckDueTimes() }
    return reported
  }
}

extension RouteReport {
  /// Whether a leg failed or was cancelled. Its endpoint then did not work as well as the planner expected.
  fileprivate var hasFailures: Bool {
    legs.contains { leg in
      switch leg.outcome {
      case .failed, .cancelled: true
      case .won, .lost: false
      }
    }
  }
}

/// The last link of the chain, which passes the request to the transport. The chain has it only when the
/// client signs requests, keeps cookies or exports traces; otherwise `RouteInterceptor` calls the transport.
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
