import NetOptLocking
import NetOptTestSupport
import TestTools
import Synchronization

/// Watches how much memory the process takes, beside what is measured.
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

  /// Ends watching.
  ///
  /// - Returns: by how many bytes the process grew at most.
  func end() async -> Int {
    let task = watch.withLock { $0.take() }
    task?.cancel()
    await task?.value
    note()
    return peak.load(ordering: .relaxed) - start
  }
}
