public import NetOptCore
import NetOptLocking

/// The life of a client, and of a response, as a scope.
extension NetOptClient {
  /// Makes a client, passes it to a closure, and shuts it down when the closure has ended.
  ///
  /// ```swift
  /// let status = try await NetOptClient.withClient { client in
  ///   try await client.execute(NetOptRequest(.get, "https://api.example.com/")).status
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - configuration: the settings of the client.
  ///   - body: the closure. A response that it returns can no longer be read.
  /// - Returns: the result of the closure.
  /// - Throws: the errors of `init`, and the error of the closure.
  public static func withClient<Result>(
    _ configuration: ClientConfiguration = ClientConfiguration(),
    _ body: (NetOptClient) async throws -> Result
  ) async throws -> Result {
    let client = try NetOptClient(configuration)
    do {
      let result = try await body(client)
      await client.shutdown()
      return result
    } catch {
      await client.shutdown()
      throw error
    }
  }

  /// Waits until the task is cancelled, and then shuts the client down with `shutdown(draining:)`. So a group
  /// of services can run the client. A group of swift-service-lifecycle does not cancel its services when it
  /// shuts down gracefully. There, `cancelWhenGracefulShutdown` does it:
  ///
  /// ```swift
  /// struct ClientService: Service {
  ///   let client: NetOptClient
  ///   func run() async throws { await cancelWhenGracefulShutdown { await client.run() } }
  /// }
  /// ```
  ///
  /// - Parameter limit: how long running calls may take to end.
  public func run(draining limit: Duration) async {
    await FirstValue<Void>().wait()
    // A new task, because this one is cancelled, and a drain ends when its task is cancelled.
    await Task { await self.shutdown(draining: limit) }.value
  }

  /// Waits until the task is cancelled, and then shuts the client down with `shutdown(draining:)` and a limit
  /// of 10 s.
  public func run() async { await run(draining: .seconds(10)) }

  /// Shuts the client down when all calls have ended. From now on, new calls fail with `shutDown`. Running
  /// calls, their retries and the bodies of their responses may end. What has not ended at the limit, or when
  /// this task is cancelled, fails with `shutDown`.
  ///
  /// - Parameter limit: how long to wait for the calls at most.
  public func shutdown(draining limit: Duration) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await self.drain() }
      group.addTask { try? await Task.sleep(for: limit) }
      await group.next()
      group.cancelAll()
    }
    await shutdown()
  }

  /// Performs a request, and passes the response to a closure. Use this instead of `execute(_:)` when the
  /// response must not outlive a scope: the client drops what the closure does not read of the body.
  ///
  /// ```swift
  /// let user = try await client.execute(request) { response in
  ///   try await response.requireSuccess().decode(User.self)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - request: the request.
  ///   - body: the closure.
  /// - Returns: the result of the closure.
  /// - Throws: the errors of `execute(_:)`, and the error of the closure.
  public func execute<Result>(
    _ request: NetOptRequest, _ body: (NetOptResponse) async throws -> Result
  ) async throws -> Result {
    try await body(try await execute(request))
  }
}
