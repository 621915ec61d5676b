import NetOptCore
import NetOptLocking

/// The token of an `Authorization`. Calls that need a token while one is being fetched wait for the same
/// fetch. Safe from any task.
final class BearerToken: Sendable {
  /// How long a fetch may take. A fetch that takes longer is abandoned when the next call needs a token.
  private static let longestFetch = Duration.seconds(30)

  /// A call of the program's closure.
  private struct Fetch {
    let number: Int
    let started: MonotonicInstant
    let task: Task<Void, Never>
    /// The calls that wait for the token, by a number.
    var waiting: [Int: @Sendable (Result<String, NetOptError>) -> Void] = [:]
  }

  private struct State {
    /// The token in use; `nil` before the first one, and after a server has rejected it.
    var token: String?
    /// The fetch under way; `nil` if there is none.
    var fetch: Fetch?
    var lastNumber = 0
  }

  private let state = Locked(State())
  private let timeSource: any TimeSource
  private let waits: BoundedWaits
  private let make: @Sendable (_ rejected: String?) async throws -> String

  init(
    _ timeSource: any TimeSource, _ waits: BoundedWaits,
    _ make: @escaping @Sendable (_ rejected: String?) async throws -> String
  ) {
    self.timeSource = timeSource
    self.waits = waits
    self.make = make
  }

  deinit { state.withLock { $0.fetch?.task }?.cancel() }

  /// Returns the token in use, and fetches one if there is none or if it is the rejected one.
  ///
  /// - Throws: the error of the fetch; `timeout` at the deadline, and `cancelled` when the task is cancelled:
  ///   the fetch then goes on for other calls; `shutDown` when the client shuts down.
  func token(replacing rejected: String?, until deadline: MonotonicInstant?) async throws(NetOptError)
    -> String
  {
    let known = state.withLock { state -> String? in
      if let rejected, state.token == rejected { state.token = nil }
      return state.token
    }
    if let known { return known }
    return try await waits.result(
      of: "the program fetched a token", in: .send, until: deadline
    ) { done in
      let number = join(rejected, done)
      return { [weak self] in self?.leave(number) }
    }
  }

  /// Adds a call to the fetch under way, and starts a fetch if there is none.
  ///
  /// - Returns: the number of the call.
  private func join(
    _ rejected: String?, _ done: @escaping @Sendable (Result<String, NetOptError>) -> Void
  ) -> Int {
    let now = timeSource.now()
    let (number, known, old) = state.withLock { state -> (Int, String?, Fetch?) in
      state.lastNumber += 1
      let number = state.lastNumber
      // The fetch may have ended since the caller looked.
      if let token = state.token { return (number, token, nil) }
      var old: Fetch?
      if let fetch = state.fetch, now - fetch.started > Self.longestFetch { old = state.fetch.take() }
      if state.fetch == nil {
        let task = Task { [weak self, make] in
          let result = await Self.fetch(rejected, make)
          self?.ended(number, result)
        }
        state.fetch = Fetch(number: number, started: now, task: task)
      }
      state.fetch?.waiting[number] = done
      return (number, nil, old)
    }
    if let known { done(.success(known)) }
    if let old {
      old.task.cancel()
      let error = NetOptError(
        .timeout, phase: .send, "the program took more than \(Self.longestFetch.shown) to fetch a token")
      for end in old.waiting.values { end(.failure(error)) }
    }
    return number
  }

  /// Removes a call that no longer waits. After the shutdown, the fetch ends with the last call.
  private func leave(_ number: Int) {
    let last = state.withLock { state -> Fetch? in
      state.fetch?.waiting[number] = nil
      guard waits.isStopped, state.fetch?.waiting.isEmpty == true else { return nil }
      return state.fetch.take()
    }
    last?.task.cancel()
  }

  /// Ends a fetch, unless it was abandoned.
  private func ended(_ number: Int, _ result: Result<String, NetOptError>) {
    let fetch = state.withLock { state -> Fetch? in
      guard state.fetch?.number == number else { return nil }
      if case .success(let token) = result { state.token = token }
      return state.fetch.take()
    }
    for end in fetch?.waiting.values.map(\.self) ?? [] { end(result) }
  }

  /// Calls the program's closure, and checks the token.
  private static func fetch(
    _ rejected: String?, _ make: @Sendable (_ rejected: String?) async throws -> String
  ) async -> Result<String, NetOptError> {
    do {
      let token = try await make(rejected)
      if !token.isEmpty, HeaderFields.fault(of: HeaderField("Authorization", token)) == nil {
        return .success(token)
      }
      return .failure(
        NetOptError(
          .custom("token-unavailable"), phase: .send,
          "the token that the program fetched is empty or has a character that a header field cannot have"))
    } catch let error as NetOptError {
      return .failure(error)
    } catch {
      return .failure(
        .custom("token-unavailable", "the program could not fetch a token", underlying: error))
    }
  }
}
