import NetOptCore
import NetOptSigning

/// Has commands print the secrets of a signer's keys, and waits for them no longer than a call may take.
struct SecretCommands: Sendable {
  private let keys: [SigningKey]
  private let timeSource: any TimeSource

  init(_ signer: RequestSigner, _ timeSource: any TimeSource) {
    keys = signer.keysWithCommands
    self.timeSource = timeSource
  }

  /// Whether the signer has such keys.
  var isNeeded: Bool { !keys.isEmpty }

  /// Returns when the secrets are there, or a command has failed: signing then says why.
  ///
  /// - Throws: `timeout`, `cancelled`.
  func run(until deadline: MonotonicInstant?) async throws(NetOptError) {
    for key in keys {
      if await key.runCommand(within: deadline.map { max($0 - timeSource.now(), .zero) }) { continue }
      if Task.isCancelled { throw NetOptError(.cancelled, phase: .sign, "the task was cancelled") }
      throw NetOptError(
        .timeout, phase: .sign,
        "the call's time limit passed while netopt ran the command that prints the secret of the key \(key.id)"
      )
    }
  }
}

/// Has the secrets of requests that are signed fetched before the cache needs them to tell users apart. Is in the chain only when commands print
/// secrets.
struct SecretInterceptor: Interceptor {
  let hosts: Set<String>
  let commands: SecretCommands

  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
  {
    if hosts.contains(request.url.origin.host) { try await commands.run(until: next.deadline) }
    return try await next.proceed(request)
  }
}
