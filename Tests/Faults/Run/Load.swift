import NetOptCore
import NetOptLocking
import NetOptTestSupport
import Synchronization

/// Sends requests in parallel lanes until it is stopped. Each lane sends one request after another.
final class Load: Sendable {
  /// The results of the calls that have ended, in the order of their ends.
  private let calls = Locked<[Call]>([])
  /// Whether `stop` was called.
  private let isOver = Atomic<Bool>(false)
  private let pause: Duration

  /// - Parameter pause: the pause of a lane between two requests, so that the servers are not the bottleneck.
  init(pause: Duration) { self.pause = pause }

  /// The results of the calls that have ended.
  var ended: [Call] { calls.withLock { $0 } }

  /// Sends requests until `stop` is called, and returns when the last request has ended.
  ///
  /// - Parameters:
  ///   - caller: the client. Its `lanes` is the number of lanes.
  ///   - label: the start of the ids of the requests. Other loads of the run must use other labels.
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

  /// Makes each lane end after its current request.
  func stop() { isOver.store(true, ordering: .relaxed) }
}
