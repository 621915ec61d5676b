import NetOpt
import NetOptCore
import NetOptCrypto
import NetOptTestSupport
import TestTools
import Testing

/// Request bodies of which the network takes only a part at a time. The buffers of the sockets are so small
/// (tcp(7)) that libcurl often cannot write.
@Suite(.enabled("\(NetworkNamespace.missing)") { NetworkNamespace.isAvailable }) struct SplitUploadTests {
  /// The cases of the scenarios that the tests use. `HostileServerTests` checks that every scenario has a
  /// case.
  static let cases: [HostileCase] = .together(
    .fails(as: .lost, ["reset-behind-the-head"]), .h2(.answers(["checks-bodies"])))

  /// libcurl from 8.7 on passes head and body to one call of SSL_write(3), which is several records. When the
  /// connection breaks between them, the server has the head, although SSL_write has reported nothing. The
  /// send buffer holds one record.
  @Test(
    "a POST is sent once when its connection breaks between two of its TLS records",
    arguments: 1...4 as ClosedRange<UInt64>)
  func partialWrites(_ seed: UInt64) async throws {
    try await SmallBuffersLab.with(send: 16_384, receive: 4096) { lab in
      var random = SplitMix64(seed: seed)
      for number in 0..<4 {
        let host = "reset-behind-the-head--split-\(number).hostile.test"
        var request = try lab.server.request(.post, host, "/broken?q=\(number)", within: .seconds(20))
        let count = 20_000 + Int(random.below(100_000))
        request.body = .bytes([UInt8](repeating: 0x61, count: count))
        let outcome = await Outcome(of: request, by: lab.client)
        #expect(outcome.fault(.fails(.lost), for: number) == nil, "\(count) bytes")
        let received = try await lab.server.received(by: host)
        #expect(received == ["POST \(number)"], "\(count) bytes: \(outcome.error.map { "\($0)" } ?? "")")
      }
    }
  }

  /// libcurl 7.88.0 to 8.0.1 may pass a part of a body to nghttp2 twice (`SentBody`). netopt then ends the
  /// request. With a send buffer of 16 KiB, Linux's usual first size, all requests must succeed: small frames
  /// wait until there is room for them (SocketRoom.c). With 4 KiB, a frame may fit only in part.
  @Test(
    "no server sees the end of an HTTP/2 request's body that is not the caller's",
    arguments: 1...4 as ClosedRange<UInt64>, [4096, 16_384])
  func multiplexedBodies(_ seed: UInt64, send: Int) async throws {
    let verdict: HostileCase.Verdict = send < 16_384 ? .either(.usual, .lost) : .answers(.usual)
    try await SmallBuffersLab.with(send: send, receive: 8192) { lab in
      var random = SplitMix64(seed: seed)
      let host = "h2-checks-bodies--split.hostile.test"
      func request(_ method: NetOptRequest.Method, _ target: String) throws -> NetOptRequest {
        try lab.server.http2Request(method, host, target, within: .seconds(60))
      }
      // The connection exists before the uploads begin.
      let first = await Outcome(of: try request(.get, "/right?q=0"), by: lab.client)
      #expect(first.fault(verdict, for: 0) == nil)
      let calls = try (1...24).map { question in
        // Each line of 16 bytes has a number, so no part of the body equals another part.
        let lines = 500 + Int(random.below(8000))
        let body = Array(
          (0..<lines).map { "\(1_000_000_000 + question * 1_000_000 + $0)-line\n" }.joined().utf8)
        let digest = try Digest.of(body, .sha256)
        var request = try request(.post, "/broken?q=\(question)&digest=\(Hex.text(digest))")
        request.body = .bytes(body)
        return (question, Task { [request] in await Outcome(of: request, by: lab.client) })
      }
      for (question, call) in calls {
        let fault = await call.value.fault(verdict, for: question)
        #expect(fault == nil, "seed \(seed)")
      }
      let received = try await lab.server.received(by: host)
      #expect(received.filter { $0.hasSuffix("altered") } == [], "seed \(seed)")
      #expect(Set(received).count == received.count, "seed \(seed)")
    }
  }
}
