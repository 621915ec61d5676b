import NetOptCore
import NetOptSigning

/// Has the secret of requests that are signed fetched before the cache and the signer need it, and waits no longer than the call may take. Is in
/// the chain only when a command prints the secret.
struct SecretInterceptor: Interceptor {
  let signing: ClientConfiguration.Signing
  let timeSource: any TimeSource

  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
  {
    if signing.hosts.contains(request.url.origin.host) {
      let key = signing.signer.key
      guard await key.runCommand(within: next.deadline.map { max($0 - timeSource.now(), .zero) }) else {
        if Task.isCancelled { throw NetOptError(.cancelled, phase: .sign, "the task was cancelled") }
        throw NetOptError(
          .timeout, phase: .sign,
          "the call's time limit passed while the command of the key \(key.id) ran that prints its secret")
      }
    }
    return try await next.proceed(request)
  }
}
