import NetOptCore
import NetOptLocking

/// The token of an `Authorization`. Calls that need a token while one is being fetched wait for the same
/// fetch. Safe from any task.
final class BearerToken: Sendable {
  /// A call that waits for a token.
  fileprivate struct Waiter {
    let done: @Sendable (Result<String, NetOptError>) -> Void
    /// Whether the call has waited since the present fetch began. If true, the call fails when this fetch
    /// takes too long. If false, the call then waits for another fetch.
    var isSecond: Bool
  }

  /// A call of the program's closure.
  fileprivate struct Fetch {
    let number: Int
    let task: Task<Void, Never>
    let timer: Task<Void, Never>
    /// The calls that wait for the token, by a number.
    var waiting: [Int: Waiter] = [:]
  }

  private struct State {
    /// The token in use; `nil` before the first one, and after a server has rejected it.
    var token: String?
    /// The token that was rejected last; `nil` after another one was fetched.
    var rejected: String?
    /// The fetch under way; `nil` if there is none.
    var fetch: Fetch?
    var lastNumber = 0
  }

  private let state = Locked(State())
  private let waits: BoundedWaits
  /// How long a fetch may take.
  private let longest: Duration
  private let make: @Sendable (_ rejected: String?) async throws -> String

  init(
    _ waits: BoundedWaits, longestFetch: Duration = .seconds(30),
    _ make: @escaping @Sendable (_ rejected: String?) async throws -> String
  ) {
    self.waits = waits
    longest = longestFetch
    self.make = make
  }

  deinit { state.withLock { $0.fetch.take() }?.cancel() }

  /// The number of calls that wait.
  var waiting: Int { state.withLock { $0.fetch?.waiting.count ?? 0 } }

  /// Returns the token in use, and fetches one if there is none or if it is the rejected one.
  ///
  /// - Throws: the error of the fetch; `timeout` at the deadline, or when the fetch takes too long;
  ///   `cancelled` when the task is cancelled; `shutDown` when the client shuts down. After the deadline or a
  ///   cancellation, the fetch continues for other calls.
  func token(replacing rejected: String?, until deadline: MonotonicInstant?) async throws(NetOptError)
    -> String
  {
    if let rejected { drop(rejected) }
    if let token = state.withLock({ $0.token }) { return token }
    return try await waits.result(
      of: "the program fetched a token", in: .send, until: deadline
    ) { done in
      let number = join(done)
      return { [weak self] in self?.leave(number) }
    }
  }

  /// Forgets a token that a server has rejected, so that the next call fetches one. Does nothing if another token
  /// is in use.
  func drop(_ rejected: String) {
    state.withLock { state in
      if state.token == rejected { (state.token, state.rejected) = (nil, rejected) }
    }
  }

  /// Adds a call to the fetch under way, and starts a fetch if there is none.
  ///
  /// - Returns: the number of the call.
  private func join(_ done: @escaping @Sendable (Result<String, NetOptError>) -> Void) -> Int {
    let (number, known) = state.withLock { state -> (Int, String?) in
      state.lastNumber += 1
      let number = state.lastNumber
      // The fetch may have ended since the caller looked.
      if let token = state.token { return (number, token) }
      let startsFetch = state.fetch == nil
      if startsFetch { state.fetch = fetch(number, replacing: state.rejected) }
      state.fetch?.waiting[number] = Waiter(done: done, isSecond: startsFetch)
      return (number, nil)
    }
    if let known { done(.success(known)) }
    return number
  }

  /// Starts a fetch. Called under the lock, so that the new tasks cannot end the fetch before it is stored.
  private func fetch(_ number: Int, replacing rejected: String?) -> Fetch {
    let task = Task { [weak self, make] in
      let result = await Self.result(of: make, rejected)
      self?.ended(number, result)
    }
    let timer = Task { [weak self, longest] in
      do { try await Task.sleep(for: longest) } catch { return }
      self?.tooLong(number)
    }
    return Fetch(number: number, task: task, timer: timer)
  }

  /// Removes a call that no longer waits. After the shutdown, the fetch ends with the last call.
  private func leave(_ number: Int) {
    let last = state.withLock { state -> Fetch? in
      state.fetch?.waiting[number] = nil
      guard waits.isStopped, state.fetch?.waiting.isEmpty == true else { return nil }
      return state.fetch.take()
    }
    last?.cancel()
  }

  /// Ends a fetch, unless it was abandoned.
  private func ended(_ number: Int, _ result: Result<String, NetOptError>) {
    let fetch = state.withLock { state -> Fetch? in
      guard state.fetch?.number == number else { return nil }
      if case .success(let token) = result { (state.token, state.rejected) = (token, nil) }
      return state.fetch.take()
    }
    guard let fetch else { return }
    fetch.timer.cancel()
    for waiter in fetch.waiting.values { waiter.done(result) }
  }

  /// Abandons a fetch that takes too long. The calls that have waited for all of it fail. The others wait for
  /// another fetch.
  private func tooLong(_ number: Int) {
    let ended = state.withLock { state -> (Fetch, [Waiter])? in
      guard let fetch = state.fetch, fetch.number == number else { return nil }
      state.fetch = nil
      let others = fetch.waiting.filter { !$0.value.isSecond }
      if !others.isEmpty {
        state.lastNumber += 1
        state.fetch = self.fetch(state.lastNumber, replacing: state.rejected)
        state.fetch?.waiting = others.mapValues { Waiter(done: $0.done, isSecond: true) }
      }
      return (fetch, fetch.waiting.values.filter(\.isSecond))
    }
    guard let (fetch, waiters) = ended else { return }
    fetch.cancel()
    let error = NetOptError(
      .timeout, phase: .send, "the program took more than \(longest.shown) to fetch a token")
    for waiter in waiters { waiter.done(.failure(error)) }
  }

  /// Calls the program's closure, and checks the token.
  private static func result(
    of make: @Sendable (_ rejected: String?) async throws -> String, _ rejected: String?
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

extension BearerToken.Fetch {
  fileprivate func cancel() {
    task.cancel()
    timer.cancel()
  }
}
