import NetOptTestSupport
import NetOptCore

// The checks of request and response bodies. `TransportConformance` describes the promise that each method
// checks.

extension ConformanceRun {
  func reportsCutBodies() async throws {
    let response = try await call(try request(.get, .cut), along: plan(.working))
    try require(response.status, equals: 200, "the status")
    let (bytes, error) = try await failure(of: response.body)
    try require(error.code, equals: .receiveFailed, "the code")
    try require(error.phase, equals: .receive, "the phase")
    try require(bytes > 0, "nothing of the body came")
  }

  func keepsBodiesInOrder() async throws {
    let unread = try await call(try request(.get, .pattern), along: plan(.working))
    for _ in 0..<10 {
      let other = try await call(try request(), along: plan(.working))
      try require(try await other.body.collect(upTo: 100).count, equals: 6, "the length of the other body")
    }
    var position = 0
    for try await chunk in unread.body {
      try require(!chunk.isEmpty, "a chunk is empty")
      try require(position + chunk.count <= TransportConformance.pattern.count, "the body is too long")
      try require(
        chunk[...] == TransportConformance.pattern[position...].prefix(chunk.count),
        "the chunk at \(position) has other bytes")
      position += chunk.count
    }
    try require(position, equals: TransportConformance.pattern.count, "the length of the body")
  }

  func sendsBodies() async throws {
    let chunks = (0..<100).map { number in [UInt8](repeating: UInt8(number), count: 1000) }
    let bodies: [(String, RequestBody, Int)] = [
      ("none", .none, 0), ("bytes", .bytes(Array(chunks.joined())), 100_000),
      ("a stream of known length", .stream(length: 100_000, Self.stream(chunks)), 100_000),
      ("a stream of unknown length", .stream(Self.stream(chunks)), 100_000),
    ]
    for (name, body, length) in bodies {
      let response = try await call(try request(.post, .upload, body: body), along: plan(.working))
      let answer = try await response.body.collect(upTo: 100)
      try require(String(decoding: answer, as: UTF8.self), equals: "\(length)\n", "what arrived of \(name)")
    }
  }

  func refusesWrongLengths() async throws {
    for length in [Int64(5), 7] {
      let stream = Self.stream([Array("6 byte".utf8)])
      let error = try await failure(
        of: try request(.post, .upload, body: .stream(length: length, stream)), along: plan(.working))
      try require(error.phase, equals: .send, "the phase")
    }
  }

  func carriesManyRequests() async throws {
    let request = try request()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<100 {
        group.addTask {
          let response = try await call(request, along: plan(.working))
          try require(try await response.body.collect(upTo: 100).count, equals: 6, "the length of a body")
        }
      }
      try await group.waitForAll()
    }
  }

  /// Makes a body stream that yields the chunks and then ends.
  private static func stream(_ chunks: [[UInt8]]) -> AsyncStream<[UInt8]> {
    AsyncStream { continuation in
      chunks.forEach { continuation.yield($0) }
      continuation.finish()
    }
  }
}
