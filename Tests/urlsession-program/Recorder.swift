import Foundation
import FoundationNetworking

/// A delegate that writes down what it is told of one task at a time.
final class Recorder: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, @unchecked Sendable {
  // Unchecked: the program changes the settings between tasks only, and the rest is used on the delegate
  // queue, which runs one operation at a time.

  var stream = Data()
  var refusesRedirects = false
  var cancelsAtResponse = false
  private var events: [String] = []
  private var body = Data()
  private var sent: Int64 = 0
  private var written: Int64 = 0
  private var done: CheckedContinuation<Void, Never>?

  /// Runs a task, and prints what the delegate was told.
  func run(
    _ name: String, _ task: URLSessionTask, _ start: (URLSessionTask) -> Void = { $0.resume() }
  ) async {
    (events, body, sent, written) = ([], Data(), 0, 0)
    await withCheckedContinuation { done in
      self.done = done
      start(task)
    }
    if sent > 0 { events.append("sent \(sent)") }
    if written > 0 { events.append("written \(written)") }
    say("\(name): \(events.joined(separator: ", ")); \(text(body, task.response))")
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) {
    events.append("response")
    completionHandler(.allow)
    if cancelsAtResponse { dataTask.cancel() }
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    if body.isEmpty { events.append("data") }
    body.append(data)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    let path = request.url?.path ?? "-"
    events.append("redirect \(response.statusCode) to \(request.httpMethod ?? "-") \(path)")
    completionHandler(refusesRedirects ? nil : request)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask,
    needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
  ) {
    completionHandler(InputStream(data: stream))
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {
    sent += bytesSent
  }

  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
  ) {
    written += bytesWritten
  }

  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
  ) {
    let data = (try? Data(contentsOf: location)) ?? Data()
    events.append("file of \(data.count) bytes \(digest(data))")
    try? FileManager.default.removeItem(at: location)
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    events.append("complete \(text(error))")
    // The program continues at once, and sets the next continuation.
    done.take()?.resume()
  }
}
