import NetOpt
import NetOptCore
import NetOptLocking

/// Counts answers that belong to another request, at two hosts that share an address.
///
/// A round is one slow request to the HTTP/1.1 host, then one to the HTTP/2 host, then eight to the HTTP/1.1 host while the
/// first one waits for its answer.
package final class SharedAddressTrial: Sendable {
  /// What the trial came to.
  package struct Result: Sendable {
    /// How many requests got an answer, right or wrong.
    package var answers = 0
    /// How many answers belong to another request.
    package var wrong = 0
    /// How many requests got an error, by its code.
    package var failed: [String: Int] = [:]
    /// The first wrong answers and errors.
    package var examples: [String] = []

    mutating func add(_ example: String) { if examples.count < 10 { examples.append(example) } }
  }

  /// How many requests follow the slow one.
  private static let followers = 8
  /// The slow request of each of a client's rounds: the first round opens connections, the others find them.
  private static let slowPaths = ["/halves", "/late", "/halves", "/late"]
  /// How many clients are at work at once.
  private static let lanes = 8

  private let address: SharedAddress
  private let result = Locked(Result())
  private let lastID = Locked(0)

  package init(at address: SharedAddress) { self.address = address }

  /// Repeats rounds until there are so many answers, or errors in their place.
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
      // When half of the answer is there, its connection is busy for certain. Nobody tells when a request without an
      // answer is sent; it was asked for first.
      if slow == "/halves" { for await _ in begun.stream {} }
      await ask(client, SharedAddress.newHost, "/quick")
      for _ in 0..<Self.followers {
        group.addTask { await self.ask(client, SharedAddress.oldHost, "/quick") }
      }
    }
  }

  /// Sends a request and judges its answer.
  ///
  /// - Parameter whenBegun: called when the head of the answer is there, or an error.
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
