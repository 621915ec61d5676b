import FoundationEssentials
import NetOptTestSupport
import TestTools

/// Measures how long the runnable threads of this process wait for a core: proc_pid_schedstat(5).
struct RunQueueWaits {
  /// How long each thread had waited for a core until the last call of `longest`, in nanoseconds since the
  /// start of the thread. The key is the thread id.
  private var before: [String: Int64] = [:]

  /// The wait of the thread that has waited longest since the last call. Zero where the kernel does not
  /// report waits, and for the first call.
  mutating func longest() -> Duration {
    let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
    var now: [String: Int64] = [:]
    for thread in threads {
      // The fields: time on a core, time waiting for a core, number of times on a core.
      let numbers = TextFile.read("/proc/self/task/\(thread)/schedstat").split(separator: " ")
      if numbers.count > 1 { now[thread] = Int64(numbers[1]) }
    }
    let longest = now.map { $0.value - (before[$0.key] ?? $0.value) }.max() ?? 0
    before = now
    return .nanoseconds(longest)
  }
}
