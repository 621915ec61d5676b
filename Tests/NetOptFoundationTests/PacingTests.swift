import Foundation
import FoundationNetworking
import NetOpt
import NetOptFoundation
import NetOptLocking
import NetOptTestSupport
import Testing

/// The speed and the time of transfers: back-pressure, suspension, time limits, progress.
@Suite("The pace of adapted tasks", .timeLimit(.minutes(2))) struct PacingTests {
  /// The size of the large body in bytes.
  private static let size = 64 << 20

  @Test("a slow delegate slows the server down")
  func backPressure() async throws {
    let sent = Counter()
    let server = try Self.largeServer(sent)
    defer { server.stop() }
    let delegate = SlowDelegate { sent.count }
    let (session, client) = try Adapted.session(delegate: delegate)
    let error = await delegate.run(session.dataTask(with: Adapted.url(server)))
    #expect(error == nil)
    #expect(delegate.received == Self.size)
    // The buffers of both sockets and of netopt. Without back-pressure, nearly all bytes would wait.
    #expect(delegate.mostWaiting < 24 << 20, "\(delegate.mostWaiting) bytes waited")
    await client.shutdown()
  }

  @Test("a suspended task stops reading, and resumes where it stopped")
  func suspension() async throws {
    let sent = Counter()
    let server = try Self.largeServer(sent)
    defer { server.stop() }
    let delegate = SlowDelegate { sent.count }
    delegate.suspendsAtFirstPiece = true
    let (session, client) = try Adapted.session(delegate: delegate)
    let task = session.dataTask(with: Adapted.url(server))
    async let error = delegate.run(task)
    // Before its first `resume`, a task is suspended too.
    try await wait(for: "the suspension") { delegate.received > 0 && task.state == .suspended }
    // Netopt's buffer and those of the sockets fill, and then the server waits.
    var last = -1
    try await wait(for: "the server to stop", within: .seconds(30)) {
      defer { last = sent.count }
      try await Task.sleep(for: .milliseconds(200))
      return sent.count == last
    }
    #expect(sent.count < Self.size && delegate.received < Self.size / 2)
    task.resume()
    // A second `resume` of a running task has no effect.
    task.resume()
    #expect(await error == nil)
    #expect(delegate.received == Self.size)
    await client.shutdown()
  }

  @Test("a time limit of less than a second holds, and progress prolongs it")
  func timeLimit() async throws {
    let server = try LoopbackServer(
      .raw { exchange in
        guard exchange.request.target == "/steady" else { return try exchange.waitForClose() }
        try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n")
        for _ in 0..<20 {
          try exchange.wait(.milliseconds(50))
          try exchange.write("a")
        }
      })
    defer { server.stop() }
    let (session, client) = try Adapted.session { $0.timeoutIntervalForRequest = 0.5 }
    #expect(try await Adapted.code { _ = try await session.data(from: Adapted.url(server)) } == .timedOut)
    // The whole response takes 1 s, and no pause in it 0.5 s.
    #expect(
      try await Adapted.text(session, Adapted.url(server, "steady"))
        == "200 \(String(repeating: "a", count: 20))")
    await client.shutdown()
  }

  @Test("the time that a delegate takes does not count")
  func slowDelegate() async throws {
    let server = try LoopbackServer(
      .raw { try $0.respond(200, text: String(repeating: "a", count: 1 << 20)) })
    defer { server.stop() }
    let delegate = SlowDelegate { 0 }
    delegate.napAtFirstPiece = 1_000_000
    let (session, client) = try Adapted.session(delegate: delegate) { $0.timeoutIntervalForRequest = 0.5 }
    let error = await delegate.run(session.dataTask(with: Adapted.url(server)))
    #expect(error == nil && delegate.received == 1 << 20)
    await client.shutdown()
  }

  /// Starts a server with a large body, which counts the bytes that it has sent.
  private static func largeServer(_ sent: Counter) throws -> LoopbackServer {
    try LoopbackServer(
      .raw { exchange in
        try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: \(size)\r\n\r\n")
        let piece = [UInt8](repeating: 7, count: 64 << 10)
        for _ in 0..<(size / piece.count) {
          try exchange.write(piece)
          sent.add(piece.count)
        }
      })
  }
}

/// A delegate that needs some time for each piece.
private final class SlowDelegate: NSObject, URLSessionDataDelegate, @unchecked Sendable {
  // Unchecked: both settings are set before the task starts. The lock holds the rest.

  private struct State {
    var received = 0
    var mostWaiting = 0
    var done: CheckedContinuation<(any Error)?, Never>?
  }

  var suspendsAtFirstPiece = false
  /// How long the delegate takes for the first piece, in microseconds.
  var napAtFirstPiece: UInt32 = 0
  private let state = Locked(State())
  private let sent: @Sendable () -> Int

  init(sent: @escaping @Sendable () -> Int) { self.sent = sent }

  var received: Int { state.withLock { $0.received } }
  /// The largest number of bytes that were sent and had not reached the delegate.
  var mostWaiting: Int { state.withLock { $0.mostWaiting } }

  func run(_ task: URLSessionTask) async -> (any Error)? {
    await withCheckedContinuation { done in
      state.withLock { $0.done = done }
      task.resume()
    }
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    if received == 0, napAtFirstPiece > 0 {
      usleep(napAtFirstPiece)
    } else if suspendsAtFirstPiece {
      if received == 0 { dataTask.suspend() }
    } else {
      usleep(500)
    }
    let sent = sent()
    state.withLock {
      $0.received += data.count
      $0.mostWaiting = max($0.mostWaiting, sent - $0.received)
    }
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    state.withLock { $0.done.take() }?.resume(returning: error)
  }
}
