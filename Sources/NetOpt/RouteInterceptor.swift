import NetOptCore

/// Plans the route, and tells the ranking how it went.
struct RouteInterceptor: Interceptor {
  let router: Router
  let prober: Prober

  func intercept(_ request: HTTPRequest, next: InterceptorChain) async throws(NetOptError) -> HTTPResponse {
    await prober.waitForFirstAnswer(of: request.url.origin, request.options, until: next.context.deadline)
    var next = next
    let plan = router.plan(for: request)
    next.context.plan = plan
    do throws(NetOptError) {
      let response = try await next.proceed(request)
      router.record(response, to: request.options, along: plan)
      return response
    } catch {
      throw router.record(error, along: plan, from: next.context.started)
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
