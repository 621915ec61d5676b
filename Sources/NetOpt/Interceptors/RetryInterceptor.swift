import NetOptCore
import NetOptRouting

/// Sends a request again when its connection failed after it was sent, or the service says that it is in trouble
/// (docs/adr/0015). A further attempt goes elsewhere when there is an elsewhere.
///
/// What it stands around is not the next link of the chain but a part of it, so that both have one frame in a call that
/// waits.
struct RetryInterceptor: Interceptor {
  let retries: Retries
  let route: RouteInterceptor

  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
  {
    retries.callBegins(at: next.started)
    if request.hedges { return try await hedge(request, next) }
    let failure: RetryPolicy.Outcome
    do throws(NetOptError) {
      let response = try await route.intercept(request, next: next)
      // What follows is rare, and would need room in every call that waits.
      guard RetryPolicy.isFailure(response.status) else { return response }
      failure = .success(response)
    } catch {
      failure = .failure(error)
    }
    return try await goOn(after: consume failure, request, next)
  }

  /// Goes on after a call's only attempt so far has failed.
  @inline(never)
  private func goOn(
    after failure: consuming RetryPolicy.Outcome, _ request: NetOptRequest, _ next: InterceptorChain
  ) async throws(NetOptError) -> NetOptResponse {
    var call = RepeatedCall(request, next, route, retries)
    return try await call.goOn(after: consume failure).get()
  }

  /// Performs a call that may have a second copy.
  @inline(never)
  private func hedge(
    _ request: NetOptRequest, _ next: InterceptorChain
  ) async throws(NetOptError) -> NetOptResponse {
    var call = RepeatedCall(request, next, route, retries)
    let outcome = await call.firstAttempt()
    return try await call.goOn(after: consume outcome).get()
  }
}
