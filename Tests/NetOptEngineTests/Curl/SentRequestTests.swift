import Testing

@testable import NetOptEngine

/// The fate of a request that got no response: whether the server may have processed it.
@Suite struct SentRequestTests {
  /// Returns a request that was written on a stream of a connection with at most 100 concurrent streams.
  ///
  /// - Parameter stream: the number of the stream; `nil` for a request that was not written.
  private func request(on stream: Int32?) -> SentRequest {
    var request = SentRequest()
    if let stream { request.writes(on: stream, limit: 100) }
    return request
  }

  @Test(
    "a stream above the last stream of GOAWAY has the fate leftOut, other streams have unknown",
    arguments: [1, 5, 7] as [Int32])
  func goaway(_ lastStream: Int32) {
    let request = request(on: 5)
    #expect(request.fate(on: .http2(lastStream: lastStream)) == (lastStream < 5 ? .leftOut : .unknown))
    #expect(request.fate(on: .http2(lastStream: 0)) == .leftOut)
    #expect(request.fate(on: .http2(lastStream: .max)) == .unknown)
    #expect(request.fate(on: .http2(lastStream: nil)) == .unknown)
  }

  @Test(
    "a refused stream has the fate refused, whatever GOAWAY says", arguments: [nil, 3, 5, .max] as [Int32?])
  func refused(_ lastStream: Int32?) {
    var request = request(on: 5)
    request.streamRefused(limit: 100)
    #expect(request.fate(on: .http2(lastStream: lastStream)) == .refused)
  }

  @Test(
    "a refused stream has the fate overLimit if the server has lowered its limit, but not to 0",
    arguments: [(0, .refused), (1, .overLimit), (99, .overLimit), (100, .refused), (.max, .refused)]
      as [(UInt32, SentRequest.Fate)])
  func limits(_ limit: UInt32, _ fate: SentRequest.Fate) {
    var request = request(on: 5)
    request.streamRefused(limit: limit)
    #expect(request.fate(on: .http2(lastStream: nil)) == fate)
  }

  @Test(
    "a request without a stream has the fate unwritten, whatever GOAWAY says",
    arguments: [nil, 0, .max] as [Int32?])
  func unwritten(_ lastStream: Int32?) {
    #expect(request(on: nil).fate(on: .http2(lastStream: lastStream)) == .unwritten)
  }

  @Test("a request with a part of a response has the fate unknown, even after a refusal or GOAWAY")
  func answered() {
    for stream in [nil, 5] as [Int32?] {
      var request = request(on: stream)
      request.receivedResponse()
      request.streamRefused(limit: 100)
      #expect(request.fate(on: .http2(lastStream: 0)) == .unknown)
      #expect(request.fate(on: .http1) == .unknown)
    }
  }

  @Test("over HTTP/1.1, a request has the fate unwritten only if writes are observed and none happened")
  func http1() {
    #expect(SentRequest().fate(on: .http1) == .unknown)
    var request = SentRequest(seesWrites: true)
    #expect(request.fate(on: .http1) == .unwritten)
    request.wasWritten()
    #expect(request.fate(on: .http1) == .unknown)
  }

  @Test(
    "on a connection with unseen frames, a request has the fate unknown, even after a refusal",
    arguments: [nil, 5] as [Int32?])
  func unseen(_ stream: Int32?) {
    var request = request(on: stream)
    #expect(request.fate(on: .unseen) == .unknown)
    request.streamRefused(limit: 100)
    #expect(request.fate(on: .unseen) == .unknown)
  }

  @Test("the error text states the cause, whether the request took effect, and how often it passed the gate")
  func losses() {
    func text(_ loss: RequestLoss) -> String { loss.description(at: "HERE", usual: "it died") }
    #expect(text(RequestLoss()) == "it died; whether the request took effect is not known")
    let leaving = text(RequestLoss(wasLeaving: true))
    #expect(leaving.contains("(GOAWAY)") && leaving.hasSuffix("whether the request took effect is not known"))
    let silent = text(RequestLoss(wasSilent: true, wasLeaving: true))
    #expect(
      silent.contains("HERE stopped answering")
        && silent.hasSuffix("whether the request took effect is not known"))
    for fate in [SentRequest.Fate.unwritten, .refused, .overLimit, .leftOut] {
      /// Returns the text about a request that no server processed in its last sending.
      func safe(_ sending: RequestLoss.Sending) -> String { text(RequestLoss(fate: fate, sending: sending)) }
      #expect(
        safe(.init(count: 4)).hasSuffix("; the request took no effect; netopt tried to send it 4 times"))
      #expect(safe(.init(count: 1)).hasSuffix("; the request took no effect; netopt tried to send it once"))
      #expect(
        safe(.init(hasStream: true)).hasSuffix(
          "; the request took no effect, and netopt cannot send its body, a stream, a second time"))
      // When a request may be repeated, netopt sends it again even if an earlier sending has an unknown fate.
      // That sending may have taken effect. So the text does not say whether the request took effect.
      let repeated = safe(.init(mayBeRepeated: true, count: 2))
      #expect(repeated.hasSuffix("; netopt tried to send the request 2 times"))
      #expect(!repeated.contains("effect"))
    }
  }
}
