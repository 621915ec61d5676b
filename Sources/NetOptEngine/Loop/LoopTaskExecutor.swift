/// Runs tasks on an event loop's thread, between its other work: what they await of netopt then comes without a
/// change of threads. For tasks that make many calls and do little else; one that computes or blocks holds up all.
public final class LoopTaskExecutor: TaskExecutor {
  private let loop: EventLoop

  /// Makes an executor for a loop's thread.
  package init(_ loop: EventLoop) { self.loop = loop }

  /// Takes a job. After the client's shutdown jobs run on the default pool, so that the tasks can end.
  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    if !loop.enqueue(job, of: self) { globalConcurrentExecutor.enqueue(job) }
  }
}
