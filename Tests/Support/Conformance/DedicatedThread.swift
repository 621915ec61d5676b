import Dispatch

/// Runs a task, and the tasks inside it, apart from the pool that all tasks share. That has one thread for each core:
/// a test that measures how late something is would measure how busy the other tests keep them.
package final class DedicatedThread: TaskExecutor {
  private let queue = DispatchQueue(label: "netopt dedicated thread")

  package init() {}

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
  }
}
