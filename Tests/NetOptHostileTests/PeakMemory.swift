import NetOptLocking
import NetOptTestSupport
import TestTools
import Synchronization

/// Measures the peak of the memory of this process, from `init` to `end`. It reads the memory every 5 ms.
final class PeakMemory: Sendable {
  /// The memory at the start in bytes.
  private let start = ProcessFootprint.now.memoryBytes
  /// The largest memory so far in bytes.
  private let peak = Atomic(0)
  /// The task that reads the memory; `nil` after `end`.
  private let watch = Locked<Task<Void, Never>?>(nil)

  init() {
    let task = Task.detached { [self] in
      while !Task.isCancelled {
        note()
        try? await Task.sleep(for: .milliseconds(5))
      }
    }
    watch.withLock { $0 = task }
  }

  /// Reads the memory, and raises the peak if necessary.
  private func note() { peak.max(ProcessFootprint.now.memoryBytes, ordering: .relaxed) }

  /// Stops watching.
  ///
  /// - Returns: the maximum growth of the process's memory, in bytes.
  func end() async -> Int {
    let task = watch.withLock { $0.take() }
    task?.cancel()
    await task?.value
    note()
    return peak.load(ordering: .relaxed) - start
  }
}
