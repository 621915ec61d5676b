import Foundation
import FoundationNetworking
import NetOpt
import NetOptLocking

/// What has been reported of the body of one request. Used on the work queue only.
final class ReportedBytes: @unchecked Sendable {
  // Unchecked: only work on the work queue of the task uses it.
  var count: Int64 = 0
}

extension TaskLoad {
  /// A response has arrived: stores its cookies, as Foundation does also for redirects.
  func receivedHead(_ response: NetOptResponse, of request: LoadRequest) {
    guard isActive else { return }
    idleTimer?.progress()
    session.configuration.storeCookies(of: response.headers, from: request.url)
  }

  /// Passes the final response to the task: the head, the body while it arrives, and the end.
  ///
  /// - Throws: the error that ended the body early.
  func pass(_ response: NetOptResponse, of request: LoadRequest) async throws {
    guard let head = HTTPURLResponse.make(response, url: request.url) else {
      throw URLError(.badServerResponse)
    }
    guard try await onQueue({ load in Result { try load.receive(head) } }).get() else { return }
    var chunks = response.body.makeAsyncIterator()
    while let chunk = try await chunks.next() {
      await waitWhileSuspended()
      guard try await onQueue({ load in Result { try load.receive(chunk) } }).get() else { return }
      if audience.delegate != nil { await waitForDelegate() }
    }
    await waitWhileSuspended()
    try await onQueue { load in Result { try load.finish(head) } }.get()
  }

  /// - Returns: whether the load goes on.
  private func receive(_ head: HTTPURLResponse) throws -> Bool {
    guard isActive, let urlProtocol else { return false }
    if task is URLSessionDownloadTask { download = try DownloadFile() }
    // Foundation's own protocol stores nothing in `URLCache` either.
    urlProtocol.client?.urlProtocol(urlProtocol, didReceive: head, cacheStoragePolicy: .notAllowed)
    return true
  }

  /// - Returns: whether the load goes on.
  private func receive(_ chunk: [UInt8]) throws -> Bool {
    guard isActive, let urlProtocol else { return false }
    idleTimer?.progress()
    // `waitForDelegate` follows: the time that the delegate takes does not count.
    if audience.delegate != nil { idleTimer?.pause() }
    if let download {
      try download.append(chunk)
      reportDownload(chunk.count, download.count)
      return true
    }
    switch audience {
    case .delegate(let delegate):
      if delegate is any URLSessionDataDelegate {
        urlProtocol.client?.urlProtocol(urlProtocol, didLoad: Data(chunk))
      }
    case .completionHandler(let delegate):
      collected.append(contentsOf: chunk)
      if let delegate = delegate as? any URLSessionDataDelegate, let task = task as? URLSessionDataTask {
        let (session, data) = (session, Data(chunk))
        session.delegateQueue.addOperation {
          delegate.urlSession(session, dataTask: task, didReceive: data)
        }
      }
    case .completionHandlerOnly, .unknown:
      collected.append(contentsOf: chunk)
    case .nobody:
      break
    }
    return true
  }

  /// Completes the task.
  private func finish(_ head: HTTPURLResponse) throws {
    guard isActive, let urlProtocol else { return end() }
    if let download {
      try download.hand(over: urlProtocol)
      self.download = nil
    } else if !collected.isEmpty {
      urlProtocol.client?.urlProtocol(urlProtocol, didLoad: collected)
    }
    // Only what is missing: on Linux, each entry for an equal space would be one more.
    if head.statusCode != 401, let (credential, space) = credential, credential.persistence != .none,
      let storage = session.configuration.urlCredentialStorage, storage.credential(forEqualOf: space) == nil
    {
      storage.set(credential, for: space)
    }
    end()
    let finish = { urlProtocol.client?.urlProtocolDidFinishLoading(urlProtocol) ?? () }
    // The load has already asked for credentials. Foundation would ask again, and send the request itself.
    if let answered = head as? AnsweredChallengeResponse {
      answered.whileConcluding(finish)
    } else {
      finish()
    }
  }

  /// Waits until the delegate has received the piece before, so that a slow delegate slows the transfer down.
  private func waitForDelegate() async {
    let received = FirstValue<Void>()
    let operation = BlockOperation {}
    // Also called for an operation that the program cancels.
    operation.completionBlock = { received.set(()) }
    session.delegateQueue.addOperation(operation)
    await received.wait()
    await onQueue { $0.idleTimer?.resume() }
  }

  private func reportDownload(_ bytes: Int, _ total: Int64) {
    guard let delegate = audience.delegate as? any URLSessionDownloadDelegate,
      let task = task as? URLSessionDownloadTask
    else { return }
    let session = session
    // A coded body has another length than the field says.
    let head = task.response as? HTTPURLResponse
    let isCoded = head?.value(forHTTPHeaderField: "Content-Encoding").map { $0 != "identity" } ?? false
    let expected = isCoded ? NSURLSessionTransferSizeUnknown : head?.expectedContentLength ?? -1
    session.delegateQueue.addOperation {
      delegate.urlSession(
        session, downloadTask: task, didWriteData: Int64(bytes), totalBytesWritten: total,
        totalBytesExpectedToWrite: expected)
    }
  }

  /// A part of the request's body was sent.
  func sentBody(_ bytes: Int64, of total: Int64?, after last: ReportedBytes) {
    guard isActive else { return }
    idleTimer?.progress()
    // A retry sends the body again from its start, which Foundation's API cannot express.
    let new = bytes - last.count
    guard new > 0 else { return }
    last.count = bytes
    guard let delegate = audience.delegate else { return }
    let (session, task) = (session, task)
    session.delegateQueue.addOperation {
      delegate.urlSession(
        session, task: task, didSendBodyData: new, totalBytesSent: bytes,
        totalBytesExpectedToSend: total ?? NSURLSessionTransferSizeUnknown)
    }
  }
}
