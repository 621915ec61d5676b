import NetOpt
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// Requests over HTTP/2 that wait for room in a socket with small buffers. In two of the tests, the server also
/// stops reading for a while.
@Suite(.enabled("\(NetworkNamespace.missing)") { NetworkNamespace.isAvailable }) struct FullSocketTests {
  /// The cases of the scenarios that the tests use. `HostileServerTests` checks that every scenario has a
  /// case.
  static let cases: [HostileCase] = .together(
    .h2(.answers(["deaf-for-a-while", "together-sixty"])),
    .h2(.either(or: .lost, ["deaf-then-an-invalid-record"])))

  /// Starts calls whose heads have random lengths.
  ///
  /// - Parameter questions: the numbers of the calls.
  /// - Returns: the calls with their numbers.
  private func start(
    _ lab: SmallBuffersLab, _ host: String, _ questions: ClosedRange<Int>, _ random: inout SplitMix64
  ) throws -> [(Int, Task<Outcome, Never>)] {
    try questions.map { question in
      var request = try lab.server.http2Request(.get, host, "/broken?q=\(question)", within: .seconds(20))
      // Random characters, which HPACK cannot compress much.
      let count = random.below(900)
      let value = String(decoding: (0..<count).map { _ in UInt8(0x21 + random.below(0x5e)) }, as: UTF8.self)
      request.headers.append(HeaderField("X-Field", value))
      return (question, Task { [request] in await Outcome(of: request, by: lab.client) })
    }
  }

  /// Starts a call that makes the server stop reading, and then further calls.
  ///
  /// - Parameter count: the number of further calls.
  private func fill(
    _ lab: SmallBuffersLab, _ host: String, _ count: Int, _ random: inout SplitMix64
  ) async throws -> [(Int, Task<Outcome, Never>)] {
    let first = try start(lab, host, 0...0, &random)
    try await wait(for: "the first request") { try await lab.server.received(by: host) == ["GET 0"] }
    return first + (try start(lab, host, 1...count, &random))
  }

  /// Lets the server go on as soon as it has stopped reading.
  private func release(_ lab: SmallBuffersLab, _ host: String) async throws {
    try await wait(for: "the server to stop reading") { try await lab.server.release(host) > 0 }
  }

  /// Checks that all calls have the right answers, and that the server received each request once.
  private func check(
    _ calls: [(Int, Task<Outcome, Never>)], _ lab: SmallBuffersLab, _ host: String, _ seed: UInt64
  ) async throws {
    for (question, call) in calls {
      let fault = await call.value.fault(.answers(.usual), for: question)
      #expect(fault == nil, "seed \(seed)")
    }
    let received = try await lab.server.received(by: host)
    #expect(received.sorted() == calls.map { "GET \($0.0)" }.sorted(), "seed \(seed)")
  }

  // A send buffer of 16 KiB is Linux's usual first size. In a smaller one, a small frame may fit only in part
  // although the kernel reports room.

  /// While the socket is full, libcurl 7.88.0 to 8.0.1 collects small frames in a buffer, whose address changes
  /// when it grows. OpenSSL refuses to repeat a write from another address, unless it is told to accept that.
  @Test(
    "calls that wait for room in a socket are sent once and answered", arguments: 1...3 as ClosedRange<UInt64>
  )
  func deafForAWhile(_ seed: UInt64) async throws {
    try await SmallBuffersLab.with(send: 16_384, receive: 4096) { lab in
      var random = SplitMix64(seed: seed)
      let host = "h2-deaf-for-a-while--full.hostile.test"
      let calls = try await fill(lab, host, 60, &random)
      try await lab.waitForFullSocket(holding: 6000)
      try await release(lab, host)
      try await check(calls, lab, host, seed)
    }
  }

  /// The server sends nothing until all 60 requests have arrived. So no data that arrives makes libcurl write
  /// again, but only the room in the socket.
  @Test(
    "calls that wait for room are sent although nothing arrives", arguments: 1...3 as ClosedRange<UInt64>)
  func silence(_ seed: UInt64) async throws {
    try await SmallBuffersLab.with(send: 16_384, receive: 4096) { lab in
      var random = SplitMix64(seed: seed)
      let host = "h2-together-sixty--full.hostile.test"
      let first = await Outcome(
        of: try lab.server.http2Request(.get, host, "/right?q=0", within: .seconds(20)), by: lab.client)
      #expect(first.fault(.answers(.usual), for: 0) == nil)
      let calls = try start(lab, host, 1...60, &random)
      for (question, call) in calls {
        let fault = await call.value.fault(.answers(.usual), for: question)
        #expect(fault == nil, "seed \(seed)")
      }
    }
  }

  /// OpenSSL cannot send its alert while the socket is full. libcurl then takes the failure for a socket without
  /// room, and never ends the transfers. netopt ends them (`RecordReader.hasFailed`).
  @Test("calls end when TLS fails while their socket fills", arguments: 1...3 as ClosedRange<UInt64>)
  func failureOfTLS(_ seed: UInt64) async throws {
    try await SmallBuffersLab.with(send: 4096, receive: 4096) { lab in
      var random = SplitMix64(seed: seed)
      // The number of calls decides whether the last write before the failure found room in the socket.
      for count in stride(from: 1, to: 30, by: 2) {
        let host = "h2-deaf-then-an-invalid-record--full-\(count).hostile.test"
        let calls = try await fill(lab, host, count, &random)
        try await release(lab, host)
        for (question, call) in calls {
          let fault = await call.value.fault(.either(.usual, .lost), for: question)
          #expect(fault == nil, "seed \(seed), \(count) calls")
        }
      }
    }
  }
}
