import Foundation
import FoundationNetworking
import NetOptLocking

/// A delegate of many tasks, which counts how often each one completes.
final class CountingDelegate: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate {
  private struct State {
    var data: [Int: Data] = [:]
    var completions: [Int: Int] = [:]
    var waiting: [Int: CheckedContinuation<RandomResult, Never>] = [:]
  }

  private let state = Locked(State())

  /// How often each task that ran with the delegate has completed.
  var completions: [Int: Int] { state.withLock { $0.completions } }

  /// Starts a task, and returns its result.
  func run(_ task: URLSessionTask, _ start: (URLSessionTask) -> Void) async -> RandomResult {
    await withCheckedContinuation { done in
      state.withLock { $0.waiting[task.taskIdentifier] = done }
      start(task)
    }
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    state.withLock { $0.data[dataTask.taskIdentifier, default: Data()].append(data) }
  }

  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
  ) {
    let data = try? Data(contentsOf: location)
    try? FileManager.default.removeItem(at: location)
    state.withLock { $0.data[downloadTask.taskIdentifier] = data }
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    let (data, done) = state.withLock { state in
      state.completions[task.taskIdentifier, default: 0] += 1
      return (
        state.data[task.taskIdentifier], state.waiting.removeValue(forKey: task.taskIdentifier)
      )
    }
    done?.resume(returning: RandomResult(data, task.response, error))
  }
}
