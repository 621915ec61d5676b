import NetOptCore
import NetOptLocking

/// The token of an `Authorization`. Calls that need a token while one is being fetched wait for the same
/// fetch. Safe from any task.
final class BearerToken: Sendable {
  private typealias Fetch = Task<Result<String, any Error>, Never>

  private struct State {
    /// The last token that was fetched; `nil` before the first.
    var token: String?
    /// The fetch under way; `nil` if there is none.
    var fetch: Fetch?
  }

  private let state = Locked(State())
  private let timeSource: any TimeSource
  private let make: @Sendable (_ rejected: String?) async throws -> String

  init(
    _ timeSource: any TimeSource, _ make: @escaping @Sendable (_ rejected: String?) async throws -> String
  ) {
    self.timeSource = timeSource
    self.make = make
  }

  /// Returns the token in use, and fetches one if there is none or if it is the rejected one.
  ///
  /// - Throws: the error of the fetch; `timeout` at the deadline; `cancelled` when the task is cancelled. The
  ///   fetch then goes on for other calls.
  func token(replacing rejected: String?, until deadline: MonotonicInstant?) async throws(NetOptError)
    -> String
  {
    let (known, fetch) = state.withLock { state -> (String?, Fetch?) in
      if let token = state.token, token != rejected { return (token, nil) }
      if let fetch = state.fetch { return (nil, fetch) }
      let fetch = Task { await self.fetch(rejected) }
      state.fetch = fetch
      return (nil, fetch)
    }
    if let known { return known }
    let result = await Self.value(of: fetch, within: deadline.map { max($0 - timeSource.now(), .zero) })
    switch result {
    case .success(let token): return token
    case .failure(let error as NetOptError): throw error
    case .failure(let error):
      throw .custom("token-unavailable", "the program could not fetch a token", underlying: error)
    case nil where Task.isCancelled: throw NetOptError(.cancelled, phase: .send, "the task was cancelled")
    case nil:
      throw NetOptError(
        .timeout, phase: .send, "the call's time limit passed while the program fetched a token")
    }
  }

  private func fetch(_ rejected: String?) async -> Result<String, any Error> {
    let result: Result<String, any Error>
    do { result = .success(try await make(rejected)) } catch { result = .failure(error) }
    state.withLock { state in
      if case .success(let token) = result { state.token = token }
      state.fetch = nil
    }
    return result
  }

  /// Waits for a fetch. Returns `nil` when the limit has passed, and when the task is cancelled.
  private static func value(
    of fetch: Fetch?, within limit: Duration?
  ) async -> Result<String, any Error>? {
    let (results, continuation) = AsyncStream<Result<String, any Error>>.makeStream()
    let end = Task {
      if let value = await fetch?.value { continuation.yield(value) }
      continuation.finish()
    }
    let timer = limit.map { limit in
      Task {
        try? await Task.sleep(for: limit)
        continuation.finish()
      }
    }
    defer {
      end.cancel()
      timer?.cancel()
    }
    for await result in results { return result }
    return nil
  }
}
