import NetOptLocking
import NetOptTestSupport
import TestTools
import Synchronization

/// Watches the memory of the process during a measurement.
final class PeakMemory: Sendable {
  private let start = ProcessFootprint.now.memoryBytes
  private let peak = Atomic(0)
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
