import Foundation
import FoundationNetworking
import NetOpt
import NetOptFoundation
import NetOptLocking
import NetOptTestSupport
import Testing

/// The invariant of the adapter: an answer belongs to its request, and each task completes exactly once.
@Suite("Many requests at once") struct RandomRequestsTests {
  @Test("each task completes once, with its own answer", arguments: [1, 2, 3] as [UInt64])
  func ownAnswers(seed: UInt64) async throws {
    let server = try EchoServer.start()
    defer { server.stop() }
    let client = try NetOptClient()
    let (configuration, delegate) = (URLSessionConfiguration.ephemeral, CountingDelegate())
    configuration.useNetOpt(client)
    let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    var random = SplitMix64(seed: seed)
    let requests = (0..<300).map { RandomRequest($0, &random, server.endpoint) }
    let results = await withTaskGroup(of: (Int, RandomResult).self) { group in
      for request in requests {
        group.addTask { (request.id, await request.run(in: session, delegate)) }
      }
      return await group.reduce(into: [Int: RandomResult]()) { $0[$1.0] = $1.1 }
    }
    for request in requests {
      guard let result = results[request.id] else {
        Issue.record("no result: \(request)")
        continue
      }
      request.check(result)
    }
    let cancelled = results.values.count { $0.error != nil }
    #expect(cancelled > 0 && cancelled < 100, "\(cancelled) of 300 were cancelled")
    // A second completion would arrive on the delegate queue, behind what the tasks have caused.
    await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
      session.delegateQueue.addOperation { done.resume() }
    }
    #expect(delegate.completions.allSatisfy { $0.value == 1 }, "\(delegate.completions)")
    try await wait(for: "the session to forget its tasks") { await Adapted.tasks(of: session) == 0 }
    session.finishTasksAndInvalidate()
    await client.shutdown()
  }
}

/// A request whose method, body, answer and end the generator has chosen.
struct RandomRequest: Sendable {
  enum Kind: CaseIterable { case asynchronous, handler, delegate, upload, download, delegateDownload }

  let id: Int
  let kind: Kind
  let request: URLRequest
  let body: Data
  let answerSize: Int
  /// Whether the task is suspended and resumed after its start. A request of the kind `asynchronous` is not.
  let isSuspended: Bool
  /// When the request is cancelled, in microseconds; `nil` if it is not.
  let cancelledAfter: Int?

  init(_ id: Int, _ random: inout SplitMix64, _ server: IPEndpoint) {
    self.id = id
    kind = Kind.allCases.randomElement(using: &random) ?? .asynchronous
    let hasBody = kind == .upload || Bool.random(using: &random)
    let sizes = [kind == .upload ? 0 : 1, 1, 100, 5_000, 200_000]
    let size = hasBody ? sizes.randomElement(using: &random) ?? 1 : 0
    body = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* (id + 3)) })
    answerSize = [0, 1, 1_000, 70_000, 500_000].randomElement(using: &random) ?? 0
    let hops = Int.random(in: 0...3, using: &random) == 0 ? Int.random(in: 1...3, using: &random) : 0
    let delay = Int.random(in: 0...4, using: &random) == 0 ? Int.random(in: 1...20, using: &random) : 0
    let chunked = Bool.random(using: &random) ? 1 : 0
    var request = URLRequest(
      url: Adapted.url(
        "http://\(server)/?id=\(id)&size=\(answerSize)&chunked=\(chunked)&delay=\(delay)&hops=\(hops)"))
    request.httpMethod = hasBody ? ["POST", "PUT"].randomElement(using: &random) : "GET"
    if hasBody, kind != .upload { request.httpBody = body }
    self.request = request
    isSuspended = Int.random(in: 0...3, using: &random) == 0
    cancelledAfter =
      Int.random(in: 0...5, using: &random) == 0 ? Int.random(in: 0...20_000, using: &random) : nil
  }

  /// Sends the request, and waits for its end.
  func run(in session: URLSession, _ delegate: CountingDelegate) async -> RandomResult {
    switch kind {
    case .asynchronous:
      let work = Task { try await session.data(for: request) }
      if let cancelledAfter {
        try? await Task.sleep(for: .microseconds(cancelledAfter))
        work.cancel()
      }
      return RandomResult(await work.result)
    case .handler:
      return await withCheckedContinuation { done in
        start(session.dataTask(with: request) { done.resume(returning: RandomResult($0, $1, $2)) })
      }
    case .upload:
      return await withCheckedContinuation { done in
        start(
          session.uploadTask(with: request, from: body) { done.resume(returning: RandomResult($0, $1, $2)) })
      }
    case .download:
      return await withCheckedContinuation { done in
        start(
          session.downloadTask(with: request) { file, response, error in
            let data = file.flatMap { try? Data(contentsOf: $0) }
            if let file { try? FileManager.default.removeItem(at: file) }
            done.resume(returning: RandomResult(data, response, error))
          })
      }
    case .delegate: return await delegate.run(session.dataTask(with: request), start)
    case .delegateDownload: return await delegate.run(session.downloadTask(with: request), start)
    }
  }

  /// Starts a task, and cancels it later if the generator has chosen so.
  private func start(_ task: URLSessionTask) {
    task.resume()
    if isSuspended {
      task.suspend()
      task.resume()
    }
    guard let cancelledAfter else { return }
    Task {
      try? await Task.sleep(for: .microseconds(cancelledAfter))
      task.cancel()
    }
  }

  /// Checks that a result is the answer to this request, or its cancellation.
  func check(_ result: RandomResult) {
    if let error = result.error {
      #expect(cancelledAfter != nil && error.code == .cancelled, "\(self): \(error)")
      return
    }
    #expect(result.status == 200, "\(self): \(result)")
    // After a redirect that changes the method, the server gets no body.
    let expected = "\(id) \(body.count) \(EchoServer.digest(Array(body)))\n"
    let start = String(decoding: result.data.prefix(expected.utf8.count), as: UTF8.self)
    #expect(start == expected, "\(self)")
    #expect(result.data.count == expected.utf8.count + answerSize, "\(self)")
    #expect(
      result.data.dropFirst(expected.utf8.count).allSatisfy { $0 == UInt8(truncatingIfNeeded: id) }, "\(self)"
    )
  }
}

/// What a program got for a request.
struct RandomResult: Sendable {
  var data: Data
  var status: Int?
  var error: URLError?

  init(_ data: Data?, _ response: URLResponse?, _ error: (any Error)?) {
    self.data = data ?? Data()
    status = (response as? HTTPURLResponse)?.statusCode
    self.error = error.map { $0 as? URLError ?? URLError(.unknown) }
  }

  init(_ result: Result<(Data, URLResponse), any Error>) {
    switch result {
    case .success(let (data, response)): self.init(data, response, nil)
    case .failure(let error): self.init(nil, nil, error)
    }
  }
}
