import NetOptCore

/// Applies the time limit that an interceptor of the program has given to the request. The chain has this
/// interceptor only when the program has interceptors. The limit counts from the start of the call.
struct TimeoutInterceptor: Interceptor {
  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
  {
    // The call has the client's limit if neither the program nor its interceptors have set one.
    guard request.options.hasTimeout else { return try await next.proceed(request) }
    let deadline = request.options.timeout.map { next.started + $0 }
    if deadline == next.deadline { return try await next.proceed(request) }
    var chain = next
    chain.context.deadline = deadline
    return try await chain.proceed(request)
  }
}
