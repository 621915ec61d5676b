import Dispatch

/// Runs a task and its child tasks outside the shared thread pool. The pool has one thread for each core, so
/// other tests on the pool would distort a measurement of delays.
package final class DedicatedThread: TaskExecutor {
  private let queue = DispatchQueue(label: "netopt dedicated thread")

  package init() {}

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
  }
}
