import Dispatch

/// A task executor with a serial queue of its own. It runs the task that prefers it, and the child tasks of
/// that task, outside the shared thread pool. The pool has one thread for each core, so other tests on the
/// pool would delay the task and distort what it measures.
package final class DedicatedThread: TaskExecutor {
  private let queue = DispatchQueue(label: "netopt dedicated thread")

  package init() {}

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
  }
}
