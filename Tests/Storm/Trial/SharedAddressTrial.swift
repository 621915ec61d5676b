import NetOpt
import NetOptCore
import NetOptLocking

/// Counts responses that belong to another request, at two hosts that share an address.
///
/// A round is one slow request to the HTTP/1.1 host, then one to the HTTP/2 host, then eight to the HTTP/1.1
/// host while the slow request waits for its response.
package final class SharedAddressTrial: Sendable {
  /// The result of the trial.
  package struct Result: Sendable {
    /// The number of requests with a response, right or wrong.
    package var answers = 0
    /// The number of responses that belong to another request.
    package var wrong = 0
    /// The number of requests with an error, by error code.
    package var failed: [String: Int] = [:]
    /// The first wrong responses and errors.
    package var examples: [String] = []

    mutating func add(_ example: String) { if examples.count < 10 { examples.append(example) } }
  }

  /// The number of requests after the slow one.
  private static let followers = 8
  /// The slow request of each round of a client. The first round opens connections, the later rounds reuse
  /// them.
  private static let slowPaths = ["/halves", "/late", "/halves", "/late"]
  /// The number of concurrent clients.
  private static let lanes = 8

  private let address: SharedAddress
  private let result = Locked(Result())
  private let lastID = Locked(0)

  package init(at address: SharedAddress) { self.address = address }

  /// Repeats rounds until there are `answers` responses and errors in total.
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

  private func round(_ client: NetOptClient, _ slow: String) async {
    await withTaskGroup { group in
      let begun = AsyncStream<Void>.makeStream()
      group.addTask { await self.ask(client, SharedAddress.oldHost, slow) { begun.continuation.finish() } }
      // Once half of the response is here, its connection is certainly busy. For `/late` nothing shows when
      // the request is sent; it was started first.
      if slow == "/halves" { for await _ in begun.stream {} }
      await ask(client, SharedAddress.newHost, "/quick")
      for _ in 0..<Self.followers {
        group.addTask { await self.ask(client, SharedAddress.oldHost, "/quick") }
      }
    }
  }

  /// Sends a request and checks its response.
  ///
  /// - Parameter whenBegun: called when the head of the response arrives, or on an error.
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
