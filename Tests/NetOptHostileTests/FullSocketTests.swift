import NetOpt
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// Requests over HTTP/2 that wait for room in a socket, because the server does not read for a while.
@Suite(.enabled("\(NetworkNamespace.missing)") { NetworkNamespace.isAvailable }) struct FullSocketTests {
  /// The cases of the scenarios that the tests use. `HostileServerTests` checks that every scenario has a
  /// case.
  static let cases: [HostileCase] = .together(
    .h2(.answers(["deaf-for-a-while"])), .h2(.either(or: .lost, ["deaf-then-an-invalid-record"])))

  /// Makes the server stop reading, and starts calls whose heads have random lengths, until the socket is
  /// full.
  ///
  /// - Parameters:
  ///   - host: the host name, whose scenario stops reading at the first request.
  ///   - count: the number of calls after that request.
  /// - Returns: the calls with their numbers.
  private func fill(
    _ lab: SmallBuffersLab, _ host: String, _ count: Int, _ random: inout SplitMix64
  ) async throws -> [(Int, Task<Outcome, Never>)] {
    func start(_ question: Int, fieldOf length: Int) throws -> (Int, Task<Outcome, Never>) {
      var request = try lab.server.http2Request(.get, host, "/broken?q=\(question)", within: .seconds(20))
      // Random characters, which HPACK cannot compress much.
      let value = String(decoding: (0..<length).map { _ in UInt8(0x21 + random.below(0x5e)) }, as: UTF8.self)
      request.headers.append(HeaderField("X-Field", value))
      return (question, Task { [request] in await Outcome(of: request, by: lab.client) })
    }
    var calls = [try start(1, fieldOf: 1)]
    try await wait(for: "the server to stop reading") {
      try await lab.server.received(by: host).contains("GET 1")
    }
    for index in 0..<count { calls.append(try start(2 + index, fieldOf: Int(random.below(900)))) }
    return calls
  }

  /// Lets the server go on as soon as it has stopped reading.
  private func release(_ lab: SmallBuffersLab, _ host: String) async throws {
    try await wait(for: "the server to stop reading") { try await lab.server.release(host) == 1 }
  }

  /// libcurl gathers small frames while the socket is full, and moves them in memory when they become more.
  @Test(
    "calls that wait for room in a socket are sent once and answered", arguments: 1...3 as ClosedRange<UInt64>
  )
  func deafForAWhile(_ seed: UInt64) async throws {
    // 16 KiB is Linux's usual first size of a send buffer. In a smaller one, a small frame may fit only in part
    // although the kernel reports room.
    try await SmallBuffersLab.with(send: 16_384, receive: 4096) { lab in
      var random = SplitMix64(seed: seed)
      let host = "h2-deaf-for-a-while--full.hostile.test"
      let calls = try await fill(lab, host, 60, &random)
      try await lab.waitUntilFull()
      try await release(lab, host)
      for (question, call) in calls {
        let fault = await call.value.fault(.answers(.usual), for: question)
        #expect(fault == nil, "seed \(seed)")
      }
      let received = try await lab.server.received(by: host)
      #expect(received.sorted() == calls.map { "GET \($0.0)" }.sorted(), "seed \(seed)")
    }
  }

  /// OpenSSL cannot send its alert while the socket is full. libcurl then takes the failure for a wait.
  @Test("calls end when TLS fails while their socket is full", arguments: 1...3 as ClosedRange<UInt64>)
  func failureOfTLS(_ seed: UInt64) async throws {
    try await SmallBuffersLab.with(send: 4096, receive: 4096) { lab in
      var random = SplitMix64(seed: seed)
      // The number of calls decides how the last write before the failure ended.
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
