import Dispatch
import Foundation
import FoundationNetworking
import NetOpt
import NetOptLocking

/// The load of one task: sends its request, follows redirects as Foundation does, and passes the response on.
///
/// A Swift task does the waiting (`run`). Everything else happens on the work queue of the `URLSessionTask`,
/// on which `cancel` also completes the task. So exactly one of both completes it: a load that finds the task
/// `canceling` or itself ended does nothing.
final class TaskLoad: @unchecked Sendable {
  // Unchecked: only work on `queue` uses the variables and the protocol.

  let task: URLSessionTask
  let session: URLSession
  let queue: DispatchQueue
  let audience: TaskAudience
  /// The delegate of the task or of its session. Read once, because an invalidation of the session drops it on
  /// another queue.
  let delegate: (any URLSessionTaskDelegate)?
  /// The protocol instance that Foundation made for the task; `nil` after the end of the load.
  var urlProtocol: NetOptURLProtocol?
  /// The pieces of a body that must be passed on in one piece.
  var collected = Data()
  /// The file of a download task; `nil` for other tasks, and before the response.
  var download: DownloadFile?
  /// The URL of the present request.
  var url: URL?
  /// The number of redirects that were followed.
  var redirects = 0
  /// The number of responses that asked for credentials.
  var challenges = 0
  /// The credential that the present request has, and what it is for; `nil` if no response asked for one.
  var credential: (URLCredential, URLProtectionSpace)?

  /// The body of the task's request.
  private let body: UploadBody
  /// The timer of `timeoutInterval`; `nil` before the start.
  private(set) var idleTimer: IdleTimer?
  private var work: Task<Void, Never>?
  /// When the task must have ended, with all redirects; `nil` without a limit.
  private let deadline: ContinuousClock.Instant?
  private var isSuspended = false
  /// The continuation of `waitWhileSuspended`.
  private var resumption: CheckedContinuation<Void, Never>?

  init(_ urlProtocol: NetOptURLProtocol, _ task: URLSessionTask, _ internals: TaskInternals) {
    self.urlProtocol = urlProtocol
    self.task = task
    session = internals.session
    queue = internals.workQueue
    audience = internals.audience
    delegate = task.delegate
    body = internals.body
    let limit = session.configuration.timeoutIntervalForResource
    deadline = limit > 0 && limit < 1e9 ? .now + .seconds(limit) : nil
  }

  // MARK: - Calls on the work queue

  /// Begins the load.
  func start() {
    guard let request = task.currentRequest, let url = request.url else { return fail(URLError(.badURL)) }
    self.url = url
    guard let reference = session.configuration.netOptClient else {
      return fail(.unknown, "connectionProxyDictionary was replaced after useNetOpt: the task has no client")
    }
    // Foundation's rule, and its code.
    if request.httpMethod == "GET", !body.isNone {
      return fail(.dataLengthExceedsMaximum, "a GET request must not have a body")
    }
    idleTimer = IdleTimer(request.idleLimit(in: session.configuration), on: queue) { [weak self] in
      self?.fail(URLError(.timedOut))
    }
    let first = LoadRequest(request, to: url, body: body, in: session.configuration)
    work = Task { await self.run(first, reference) }
  }

  /// Stops reading the response until `resume`.
  func suspend() {
    guard !isSuspended else { return }
    isSuspended = true
    idleTimer?.pause()
  }

  /// Continues after `suspend`.
  func resume() {
    guard isSuspended else { return }
    isSuspended = false
    idleTimer?.resume()
    resumption.take()?.resume()
  }

  /// Whether the load may still call the client. False after its end, and while `cancel` completes the task.
  var isActive: Bool { urlProtocol != nil && task.state != .canceling }

  /// Ends the load without a call of the client. May be called again.
  func end() {
    guard let urlProtocol else { return }
    self.urlProtocol = nil
    idleTimer?.stop()
    work?.cancel()
    download?.discard()
    download = nil
    collected = Data()
    resumption.take()?.resume()
    urlProtocol.loadDidEnd()
  }

  /// Completes the task with an error, unless it has ended.
  func fail(_ error: URLError) {
    guard isActive, let urlProtocol else { return end() }
    let shown = error.addingURL(url)
    end()
    urlProtocol.client?.urlProtocol(urlProtocol, didFailWithError: shown)
  }

  private func fail(_ code: URLError.Code, _ description: String) {
    fail(URLError(code, userInfo: [NSLocalizedDescriptionKey: description]))
  }

  // MARK: - The Swift task

  private func run(_ first: LoadRequest, _ reference: ClientReference) async {
    do {
      var request = first
      while true {
        // A task that is suspended right after its start sends nothing.
        await waitWhileSuspended()
        let sent = try await netOptRequest(request, reference.options)
        let response = try await reference.client.execute(sent)
        await onQueue { [request] in $0.receivedHead(response, of: request) }
        guard let next = try await nextRequest(after: response, to: request, by: reference.client) else {
          return try await pass(response, of: request)
        }
        request = next
      }
    } catch {
      let error = URLError(loading: error)
      await onQueue { $0.fail(error) }
    }
  }

  /// Makes the request that netopt sends, which reports its progress to the delegate.
  private func netOptRequest(
    _ request: LoadRequest, _ options: RequestOptions
  ) async throws -> NetOptRequest {
    var request = request
    if case .delegateStream = request.body { request.body = await streamOfDelegate() }
    var sent = try request.netOptRequest(in: session.configuration, options)
    sent.options.timeout = deadline.map { $0 - .now }
    if let left = sent.options.timeout, left <= .zero { throw URLError(.timedOut) }
    // Small bodies leave with the head, and without a delegate nobody follows their progress.
    let isLarge = sent.body.length.map { $0 > 64 * 1024 } ?? true
    if isLarge || audience.delegate != nil {
      let last = ReportedBytes()
      sent.body = sent.body.reportingProgress { bytes, total in
        self.queue.async { self.sentBody(bytes, of: total, after: last) }
      }
    }
    return sent
  }

  /// Asks the delegate for the stream of the body, as Foundation does each time it sends such a request.
  private func streamOfDelegate() async -> UploadBody {
    guard let delegate else { return .none }
    let answer = FirstValue<UploadBody>()
    queue.async {
      delegate.urlSession(self.session, task: self.task) { stream in
        answer.set(stream.map { UploadBody.stream($0) } ?? .none)
      }
    }
    return await answer.value(whenCancelled: .none)
  }

  /// Waits until the task is not suspended, or the load has ended.
  func waitWhileSuspended() async {
    await withCheckedContinuation { (running: CheckedContinuation<Void, Never>) in
      queue.async {
        if self.isSuspended, self.urlProtocol != nil {
          self.resumption = running
        } else {
          running.resume()
        }
      }
    }
  }

  /// Runs a closure on the work queue, and returns its result.
  func onQueue<Result: Sendable>(_ work: @escaping @Sendable (TaskLoad) -> Result) async -> Result {
    await withCheckedContinuation { result in queue.async { result.resume(returning: work(self)) } }
  }
}
