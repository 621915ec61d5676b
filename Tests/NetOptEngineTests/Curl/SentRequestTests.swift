import Testing

@testable import NetOptEngine

/// What a server may have made of a request that has no answer.
@Suite struct SentRequestTests {
  private func request(on stream: Int32?) -> SentRequest {
    var request = SentRequest()
    if let stream { request.writes(on: stream, limit: 100) }
    return request
  }

  @Test(
    "a stream above GOAWAY's last one was not processed, others may have been",
    arguments: [1, 5, 7] as [Int32])
  func goaway(_ lastStream: Int32) {
    let request = request(on: 5)
    #expect(request.fate(on: .http2(lastStream: lastStream)) == (lastStream < 5 ? .leftOut : .unknown))
    #expect(request.fate(on: .http2(lastStream: 0)) == .leftOut)
    #expect(request.fate(on: .http2(lastStream: .max)) == .unknown)
    #expect(request.fate(on: .http2(lastStream: nil)) == .unknown)
  }

  @Test(
    "a refused stream was not processed, whatever else is known", arguments: [nil, 3, 5, .max] as [Int32?])
  func refused(_ lastStream: Int32?) {
    var request = request(on: 5)
    request.wasRefused(limit: 100)
    #expect(request.fate(on: .http2(lastStream: lastStream)) == .refused)
  }

  @Test(
    "a stream that was refused by a lower limit than the one it was opened under crossed it on the wire",
    arguments: [(0, .refused), (1, .overLimit), (99, .overLimit), (100, .refused), (.max, .refused)]
      as [(UInt32, SentRequest.Fate)])
  func limits(_ limit: UInt32, _ fate: SentRequest.Fate) {
    var request = request(on: 5)
    request.wasRefused(limit: limit)
    #expect(request.fate(on: .http2(lastStream: nil)) == fate)
  }

  @Test("what has no stream was not written", arguments: [nil, 0, .max] as [Int32?])
  func unwritten(_ lastStream: Int32?) {
    #expect(request(on: nil).fate(on: .http2(lastStream: lastStream)) == .unwritten)
  }

  @Test("what was answered may have been processed, whatever the server says then")
  func answered() {
    for stream in [nil, 5] as [Int32?] {
      var request = request(on: stream)
      request.wasAnswered()
      request.wasRefused(limit: 100)
      #expect(request.fate(on: .http2(lastStream: 0)) == .unknown)
      #expect(request.fate(on: .http1) == .unknown)
    }
  }

  @Test("over HTTP/1.1 what was written may have been processed")
  func http1() {
    #expect(SentRequest().fate(on: .http1) == .unknown)
    var request = SentRequest(seesWrites: true)
    #expect(request.fate(on: .http1) == .unwritten)
    request.wasWritten()
    #expect(request.fate(on: .http1) == .unknown)
  }

  @Test("what is not seen may have been processed", arguments: [nil, 5] as [Int32?])
  func unseen(_ stream: Int32?) {
    var request = request(on: stream)
    #expect(request.fate(on: .unseen) == .unknown)
    request.wasRefused(limit: 100)
    #expect(request.fate(on: .unseen) == .unknown)
  }

  @Test("a caller is told why there is no answer, and whether the request took effect")
  func losses() {
    func text(_ loss: RequestLoss) -> String { loss.description(at: "HERE", usual: "it died") }
    #expect(text(RequestLoss()) == "it died; whether the request took effect is not known")
    let leaving = text(RequestLoss(wasLeaving: true))
    #expect(leaving.contains("(GOAWAY)") && leaving.hasSuffix("whether the request took effect is not known"))
    let silent = text(RequestLoss(wasSilent: true, wasLeaving: true))
    #expect(
      silent.contains("HERE had gone silent")
        && silent.hasSuffix("whether the request took effect is not known"))
    for fate in [SentRequest.Fate.unwritten, .refused, .overLimit, .leftOut] {
      func safe(_ sending: RequestLoss.Sending) -> String { text(RequestLoss(fate: fate, sending: sending)) }
      #expect(safe(.init(count: 4)).hasSuffix("; it took no effect, and was sent 4 times"))
      #expect(safe(.init(count: 1)).hasSuffix("; it took no effect, and was sent once"))
      #expect(
        safe(.init(hasStream: true)).hasSuffix(
          "; it took no effect, and its body, a stream, cannot be sent a second time"))
      // It may have taken effect another time.
      let repeated = safe(.init(mayBeRepeated: true, count: 2))
      #expect(repeated.hasSuffix("; it was sent 2 times") && !repeated.contains("effect"))
    }
  }
}
