import NetOptCore
import NetOptLocking
import NetOptTestSupport
import Synchronization

/// Sends requests in parallel lanes, each after the other, until it is told to stop.
final class Load: Sendable {
  private let calls = Locked<[Call]>([])
  private let isOver = Atomic<Bool>(false)
  private let pause: Duration

  /// - Parameter pause: how long a lane rests between two requests, so that servers are not the bottleneck.
  init(pause: Duration) { self.pause = pause }

  /// What became of the calls that have ended.
  var ended: [Call] { calls.withLock { $0 } }

  /// Sends requests until `stop`, and returns when the last one has ended.
  func run(_ caller: some Caller, label: String) async throws {
    try await withThrowingTaskGroup { group in
      for lane in 0..<caller.lanes {
        group.addTask { [self] in
          var number = 0
          while !isOver.load(ordering: .relaxed) {
            let calls = try await caller.perform("\(label)l\(lane)n\(number)")
            self.calls.withLock { $0 += calls }
            number += 1
            try await Task.sleep(for: pause)
          }
        }
      }
      try await group.waitForAll()
    }
  }

  /// Has each lane end with the request that it waits for.
  func stop() { isOver.store(true, ordering: .relaxed) }
}
