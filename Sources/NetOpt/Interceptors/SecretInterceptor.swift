import NetOptCore
import NetOptSigning

/// Runs the commands that print the secrets of a signer's keys, and waits for them until the deadline of the
/// call at most.
struct SecretCommands: Sendable {
  /// The keys whose secret a command prints.
  private let keys: [SigningKey]
  private let timeSource: any TimeSource

  init(_ signer: RequestSigner, _ timeSource: any TimeSource) {
    keys = signer.keysWithCommands
    self.timeSource = timeSource
  }

  /// Whether the signer has keys whose secret a command prints.
  var isNeeded: Bool { !keys.isEmpty }

  /// Runs the commands whose secrets netopt does not have yet, one after the other, and returns when they
  /// have ended. When a command fails, this function does not throw: the signer later throws the command's
  /// error.
  ///
  /// - Parameter deadline: the deadline of the call; `nil` for a call without a time limit.
  /// - Throws: `timeout` when the deadline passes; `cancelled` when the task was cancelled.
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

/// Runs the commands that print secrets, before the cache needs the secrets. The cache needs them because the
/// partition of a signed request depends on the fingerprint of the key, which comes from the secret. The
/// chain has this interceptor only when the client signs with keys whose secret a command prints.
struct SecretInterceptor: Interceptor {
  /// The hosts whose requests the client signs.
  let hosts: Set<String>
  let commands: SecretCommands

  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
  {
    if hosts.contains(request.url.origin.host) { try await commands.run(until: next.deadline) }
    return try await next.proceed(request)
  }
}
