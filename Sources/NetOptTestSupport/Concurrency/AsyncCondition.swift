import NetOptCore
import NetOptLocking

/// A condition variable for tasks. It has a state behind a lock. A task can wait until the state meets a
/// condition that the task chooses.
final class AsyncCondition<State: Sendable>: Sendable {
  /// A suspended task, and the condition that it waits for.
  private struct Waiter {
    /// The condition: whether a state lets the task continue.
    let holds: @Sendable (State) -> Bool
    /// Resumes the task: with true when the condition holds, with false when the task is cancelled.
    let continuation: CheckedContinuation<Bool, Never>
  }

  /// The state and the tasks that wait, behind one lock.
  private struct Storage {
    var state: State
    /// The id that the last call of `wait` got; 0 before the first call. Ids count up.
    var nextID: UInt64 = 0
    /// The suspended tasks, by the ids of their calls of `wait`.
    var waiters: [UInt64: Waiter] = [:]
    /// The ids of calls of `wait` whose task was cancelled and that have not returned yet. A call that finds
    /// its id here does not suspend its task.
    var cancelled: Set<UInt64> = []
  }

  private let storage: Locked<Storage>

  init(_ state: State) { storage = Locked(Storage(state: state)) }

  /// The current state.
  var state: State { storage.withLock { $0.state } }

  /// The number of suspended tasks.
  var waiting: Int { storage.withLock { $0.waiters.count } }

  /// Changes the state, and resumes the tasks whose conditions now hold.
  func update<Result: Sendable>(_ change: (inout State) -> Result) -> Result {
    let (result, ready) = storage.withLock { storage in
      let result = change(&storage.state)
      let ready = storage.waiters.filter { $0.value.holds(storage.state) }
      for id in ready.keys { storage.waiters[id] = nil }
      return (result, ready.values.map(\.continuation))
    }
    // The tasks resume outside the lock, because a continuation may run its task at once.
    ready.forEach { $0.resume(returning: true) }
    return result
  }

  /// Suspends the task until the state meets a condition.
  ///
  /// - Parameter holds: the condition. It is evaluated at once and after each change of the state, under the
  ///   lock.
  /// - Returns: true when the condition held; false when the task was cancelled first.
  func wait(until holds: @escaping @Sendable (State) -> Bool) async -> Bool {
    let id = storage.withLock { storage in
      storage.nextID += 1
      return storage.nextID
    }
    let held = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let answer: Bool? = storage.withLock { storage in
          if holds(storage.state) { return true }
          if storage.cancelled.contains(id) { return false }
          storage.waiters[id] = Waiter(holds: holds, continuation: continuation)
          return nil
        }
        if let answer { continuation.resume(returning: answer) }
      }
    } onCancel: {
      let waiter = storage.withLock { storage in
        storage.cancelled.insert(id)
        return storage.waiters.removeValue(forKey: id)
      }
      waiter?.continuation.resume(returning: false)
    }
    storage.withLock { _ = $0.cancelled.remove(id) }
    return held
  }
}
