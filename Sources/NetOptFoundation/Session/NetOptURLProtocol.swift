import Foundation
import FoundationNetworking

/// Loads the requests of one task over the client of its session. Foundation makes an instance for each task,
/// and calls its methods on the work queue of the task.
final class NetOptURLProtocol: URLProtocol {
  /// The load of the task; `nil` before the task is resumed, and after it has ended.
  private var load: TaskLoad?
  /// Whether the load has begun. A task is loaded once: later starts continue a suspended load.
  private var hasStarted = false

  override class func canInit(with request: URLRequest) -> Bool {
    let scheme = request.url?.scheme?.lowercased()
    return scheme == "http" || scheme == "https"
  }

  override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

  override func startLoading() {
    if hasStarted {
      load?.resume()
      return
    }
    // A task that was cancelled meanwhile is completed by `cancel`.
    guard let task, task.state != .canceling else { return }
    hasStarted = true
    // `useNetOpt` has checked that tasks have these properties.
    guard let internals = TaskInternals(task) else { preconditionFailure("the task has no session") }
    let load = TaskLoad(self, task, internals)
    self.load = load
    load.start()
  }

  override func stopLoading() {
    // `URLSessionTask.cancel` completes the task itself. In any other state, the task was suspended. If it
    // was resumed meanwhile, Foundation calls `startLoading` next, which resumes the load.
    if task?.state == .canceling { load?.end() } else { load?.suspend() }
  }

  /// The load has ended. Drops it, because it refers to this instance.
  func loadDidEnd() { load = nil }
}
