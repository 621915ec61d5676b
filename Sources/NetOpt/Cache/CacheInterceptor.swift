import NetOptCaching
import NetOptCore

/// Answers requests from the cache, stores responses, and makes concurrent calls for the same resource share
/// one fetch. The chain has this interceptor only when the client has a cache.
struct CacheInterceptor: Interceptor {
  let cache: ResponseCache

  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
  {
    // Very many fields, and values with long runs of combining marks, would take seconds to compare. The
    // transport refuses them too, but only after the cache has compared and hashed the fields.
    if let fault = request.headers.sizeFault { throw NetOptError(.invalidRequest, phase: .send, fault) }
    for field in request.headers {
      if let fault = HeaderFields.longRunFault(of: field) {
        throw NetOptError(.invalidRequest, phase: .send, fault)
      }
    }
    guard let call = CacheCall(request, cache) else { return try await next.proceed(request) }
    // Memory answers most requests, and this look-up does not suspend the task.
    let found =
      if let found = cache.entriesInMemory(for: call.key) { found } else {
        await cache.store.entries(for: call.key, within: cache.patience(until: next.deadline))
      }
    let decision = call.decide(found)
    if case .serve(let service) = decision { return call.serve(service, refreshingWith: next) }
    return try await call.execute(decision, hasEntries: !found.isEmpty, next)
  }
}
