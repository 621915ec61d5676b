import NetOptCore

/// Plans the route, and tells the ranking how it went.
struct RouteInterceptor: Interceptor {
  let router: Router
  let prober: Prober

  func intercept(_ request: HTTPRequest, next: InterceptorChain) async throws(NetOptError) -> HTTPResponse {
    await prober.waitForFirstAnswer(of: request.url.origin, request.options, until: next.context.deadline)
    var next = next
    if let attempt = next.context.attempt {
      next.context.plan = try router.plan(for: request, attempt)
    } else {
      next.context.plan = router.plan(for: request)
    }
    do throws(NetOptError) {
      let response = try await next.proceed(request)
      router.record(response, to: request.options)
      return response
    } catch {
      if let route = error.route { router.record(route) }
      throw error
    }
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
