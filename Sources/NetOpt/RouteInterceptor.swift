import NetOptCore

/// Plans the route, and tells the ranking how it went.
///
/// What is needed before and after is in functions that are not inlined: its room would be kept by every call that waits.
struct RouteInterceptor: Interceptor {
  let router: Router
  let prober: Prober

  @inline(__always)
  func intercept(_ request: HTTPRequest, next: InterceptorChain) async throws(NetOptError) -> HTTPResponse {
    await waitForFirstAnswer(request, until: next.context.deadline)
    var next = next
    next.context.plan = try router.plan(for: request, next.context.attempt)
    do throws(NetOptError) {
      let response = try await next.proceed(request)
      router.record(response, to: request)
      return response
    } catch {
      router.record(error)
      throw error
    }
  }

  @inline(never)
  private func waitForFirstAnswer(_ request: HTTPRequest, until deadline: MonotonicInstant?) async {
    await prober.waitForFirstAnswer(of: request.url.origin, request.options, until: deadline)
  }
}

/// The end of the chain.
struct TransportInterceptor: Interceptor {
  let transport: any Transport

  func intercept(_ request: HTTPRequest, next: InterceptorChain) async throws(NetOptError) -> HTTPResponse {
    guard let plan = next.context.plan else {
      throw NetOptError(
        .invalidConfiguration, phase: .send, "the request reached the transport without a route")
    }
    return try await transport.execute(request, along: plan, in: next.context)
  }
}
