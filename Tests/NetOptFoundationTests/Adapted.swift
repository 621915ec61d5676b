import Foundation
import FoundationNetworking
import NetOpt
import NetOptFoundation
import NetOptTestSupport

/// Makes `URLSession`s whose requests netopt sends, and does with them what several tests do.
enum Adapted {
  /// Makes a session with cookies of its own, and its client.
  static func session(
    delegate: (any URLSessionDelegate)? = nil, _ change: (URLSessionConfiguration) -> Void = { _ in }
  ) throws -> (URLSession, NetOptClient) {
    let configuration = URLSessionConfiguration.ephemeral
    change(configuration)
    let client = try NetOptClient()
    configuration.useNetOpt(client)
    return (URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil), client)
  }

  static func url(_ server: LoopbackServer, _ path: String = "") -> URL {
    url("http://\(server.endpoint)/\(path)")
  }

  static func url(_ text: String) -> URL {
    guard let url = URL(string: text) else { fatalError("not a URL: \(text)") }
    return url
  }

  /// Returns the status and the body of a response.
  static func text(_ session: URLSession, _ url: URL) async throws -> String {
    let (data, response) = try await session.data(from: url)
    return "\((response as? HTTPURLResponse)?.statusCode ?? 0) \(String(decoding: data, as: UTF8.self))"
  }

  /// Returns the number of tasks that have not ended.
  static func tasks(of session: URLSession) async -> Int {
    await withCheckedContinuation { count in session.getAllTasks { count.resume(returning: $0.count) } }
  }

  /// Returns the code of the `URLError` that a closure throws.
  static func code(_ work: () async throws -> Void) async throws -> URLError.Code? {
    do {
      try await work()
      return nil
    } catch let error as URLError {
      return error.code
    }
  }
}
