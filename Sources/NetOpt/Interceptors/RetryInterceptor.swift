import NetOptCore
import NetOptRouting

/// Sends a request again when its connection failed after the request was sent, when the server broke the
/// rules of HTTP, when no server processed the request, or when the response is a 421, 502, 503 or 504
/// (docs/adr/0015). The next attempt goes to another endpoint if there is one.
///
/// This interceptor calls the route interceptor itself, instead of having it as the next link of the chain.
/// So a waiting call has one async frame for both.
struct RetryInterceptor: Interceptor {
  let retries: Retries
  let route: RouteInterceptor

  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
  {
    retries.callBegins(at: next.started)
    if request.hedges { return try await hedge(request, next) }
    let firstOutcome: RetryPolicy.Outcome
    do throws(NetOptError) {
      let response = try await route.intercept(request, next: next)
      // Retries are rare. Their code is in another function, because its local variables would enlarge the
      // frame of every waiting call.
      guard RetryPolicy.isFailure(response.status) else { return response }
      firstOutcome = .success(response)
    } catch {
      firstOutcome = .failure(error)
    }
    return try await retry(after: consume firstOutcome, request, next)
  }

  /// Continues a call after its first attempt. This attempt failed, or got a response whose status may be a
  /// reason for a retry.
  @inline(never)
  private func retry(
    after firstOutcome: consuming RetryPolicy.Outcome, _ request: NetOptRequest, _ next: InterceptorChain
  ) async throws(NetOptError) -> NetOptResponse {
    var call = RepeatedCall(request, next, route, retries)
    return try await call.retry(after: consume firstOutcome).get()
  }

  /// Performs a call with the option `hedges`, its first attempt included.
  @inline(never)
  private func hedge(
    _ request: NetOptRequest, _ next: InterceptorChain
  ) async throws(NetOptError) -> NetOptResponse {
    var call = RepeatedCall(request, next, route, retries)
    let outcome = await call.firstAttempt()
    return try await call.retry(after: consume outcome).get()
  }
}
