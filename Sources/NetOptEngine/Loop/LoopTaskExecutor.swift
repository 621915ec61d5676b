/// Runs tasks on an event loop's thread, between the loop's other work. Results of netopt then reach the
/// tasks without a thread switch. Meant for tasks that make many calls and do little else: a task that
/// computes or blocks delays all other work on the loop.
public final class LoopTaskExecutor: TaskExecutor {
  private let loop: EventLoop

  /// Makes an executor for the thread of a loop.
  package init(_ loop: EventLoop) { self.loop = loop }

  /// Runs a job on the loop's thread. After the loop has stopped (the client's shutdown), runs the job on
  /// Swift's default thread pool, so that its task can end.
  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    if !loop.enqueue(job, of: self) { globalConcurrentExecutor.enqueue(job) }
  }
}
