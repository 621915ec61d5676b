import NetOpt
import NetOptCore
import NetOptLocking

/// Sends requests to two hosts that share an address, and counts the responses that belong to another request
/// than the one that got them.
///
/// A round begins with a slow request to the HTTP/1.1 host. While this request waits for its response, the
/// client sends one request to the HTTP/2 host, and then eight concurrent requests to the HTTP/1.1 host.
package final class SharedAddressTrial: Sendable {
  /// The result of the trial.
  package struct Result: Sendable {
    /// The number of requests that got a response, right or wrong.
    package var answers = 0
    /// The number of wrong responses: status, id or body do not fit the request.
    package var wrong = 0
    /// The number of requests that failed, by the code of the error.
    package var failed: [String: Int] = [:]
    /// Descriptions of the first wrong responses and errors, at most ten.
    package var examples: [String] = []

    mutating func add(_ example: String) { if examples.count < 10 { examples.append(example) } }
  }

  /// The number of requests to the HTTP/1.1 host after the slow request of a round.
  private static let followers = 8
  /// The path of the slow request, for each round of a client. In the first round the client opens its
  /// connections. In the later rounds it reuses them.
  private static let slowPaths = ["/halves", "/late", "/halves", "/late"]
  /// The number of clients that run rounds at the same time.
  private static let lanes = 8

  private let address: SharedAddress
  private let result = Locked(Result())
  /// The id of the request that was made last. Ids count from 1.
  private let lastID = Locked(0)

  package init(at address: SharedAddress) { self.address = address }

  /// Repeats rounds until there are at least `answers` responses and errors in total. Each client makes one
  /// round for each of `slowPaths`. Then a new client replaces it.
  package func run(answers: Int) async throws -> Result {
    return try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<Self.lanes {
        group.addTask {
          while self.result.withLock({ $0.answers + $0.failed.values.reduce(0, +) }) < answers {
            let client = try await self.address.client()
            for slow in Self.slowPaths { await self.round(client, slow) }
            await client.shutdown()
          }
        }
      }
      try await group.waitForAll()
      return result.withLock { $0 }
    }
  }

  /// Performs one round. `slow` is the path of the slow request.
  private func round(_ client: NetOptClient, _ slow: String) async {
    await withTaskGroup { group in
      let begun = AsyncStream<Void>.makeStream()
      group.addTask { await self.ask(client, SharedAddress.oldHost, slow) { begun.continuation.finish() } }
      // With `/halves`, waits for the head of the slow response, so that the connection is certainly busy.
      // With `/late`, nothing shows when the request has been sent. It only started first.
      if slow == "/halves" { for await _ in begun.stream {} }
      await ask(client, SharedAddress.newHost, "/quick")
      for _ in 0..<Self.followers {
        group.addTask { await self.ask(client, SharedAddress.oldHost, "/quick") }
      }
    }
  }

  /// Sends a request, checks its response, and counts the outcome in `result`.
  ///
  /// - Parameter whenBegun: called when the head of the response arrives, and again when the function ends.
  private func ask(
    _ client: NetOptClient, _ host: String, _ path: String, whenBegun: @Sendable () -> Void = {}
  ) async {
    defer { whenBegun() }
    let id = lastID.withLock { id in
      id += 1
      return String(id)
    }
    do throws(NetOptError) {
      var request = try NetOptRequest(.get, "https://\(host):\(address.endpoint.port)\(path)")
      request.headers["X-Id"] = id
      let response = try await client.execute(request)
      whenBegun()
      let body = String(decoding: try await response.body.collect(upTo: 1000), as: UTF8.self)
      let expected = "\(id) GET \(host):\(address.endpoint.port)"
      let isRight = response.status == 200 && response.headers["X-Id"] == id && body == expected
      result.withLock { result in
        result.answers += 1
        guard !isRight else { return }
        result.wrong += 1
        result.add("asked \"\(expected)\" and got \(response.status) \"\(body)\" over \(response.version)")
      }
    } catch {
      result.withLock { result in
        result.failed[error.code.description, default: 0] += 1
        result.add("asked id \(id) at \(host) and got the error: \(error)")
      }
    }
  }
}
