import NetOptCore

/// Plans the route, and tells the ranking how it went.
struct RouteInterceptor: Interceptor {
  let router: Router
  let prober: Prober

  @inline(__always)
  func intercept(_ request: HTTPRequest, next: InterceptorChain) async throws(NetOptError) -> HTTPResponse {
    if !prober.isSettled(request) { await prober.waitForFirstAnswer(to: request, until: next.deadline) }
    do throws(NetOptError) {
      let response = try await next.along(router.plan(for: request)).proceed(request)
      router.record(response, to: request)
      return response
    } catch {
      router.record(error)
      throw error
    }
  }
}

/// The end of the chain.
struct TransportInterceptor: Interceptor {
  let transport: any Transport

  @inline(__always)
  func intercept(_ request: HTTPRequest, next: InterceptorChain) async throws(NetOptError) -> HTTPResponse {
    guard let plan = next.context.plan else {
      throw NetOptError(
        .invalidConfiguration, phase: .send, "the request reached the transport without a route")
    }
    return try await transport.execute(request, along: plan, in: next.context)
  }
}
