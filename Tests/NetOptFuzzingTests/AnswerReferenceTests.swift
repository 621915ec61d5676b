import NetOptCore
import Testing

@testable import NetOptFuzzing

/// Tests the reference implementations that read responses, and the rule that compares the outcome at the
/// client with their result (`AnswerRules.fault`). The rule must also find faults: a rule that accepts every
/// outcome would be useless.
@Suite struct AnswerReferenceTests {
  /// The status line of a right response.
  private static let ok = "HTTP/1.1 200 OK\r\n"
  /// The head of a chunked response.
  private static let chunked = ok + "Transfer-Encoding: chunked\r\n\r\n"

  /// The result of a reference implementation as a short text. A complete response gives "strict" if every
  /// client must accept it, otherwise "whole", and then its status and body.
  private static func verdict(_ answer: ReferenceAnswer) -> String {
    switch answer {
    case .whole(let whole):
      "\(whole.isStrict ? "strict" : "whole") \(whole.status) \(String(decoding: whole.body, as: UTF8.self))"
    case .broken: "broken"
    case .open: "open"
    }
  }

  /// HTTP/1.1 responses, each with the right result of the reference, as in `verdict`.
  private static let answersOfHTTP1: [(String, String)] = [
    (ok + "Content-Length: 5\r\n\r\nhello", "strict 200 hello"), (ok + "\r\nhello", "strict 200 hello"),
    (ok + "Content-Length: 6\r\n\r\nhello", "broken"),
    (ok + "Content-Length: 4\r\n\r\nhello", "whole 200 hell"),
    (ok + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "broken"),
    (ok + "Content-Length: 5", "broken"),
    ("HTTP/1.1 100 Continue\r\n\r\n" + ok + "Content-Length: 0\r\n\r\n", "strict 200 "),
    ("HTTP/1.1 101 Switching\r\n\r\n", "broken"), ("HTTP/1.1 099 Odd\r\n\r\n", "broken"), ("", "broken"),
    ("HTTP/1.1 204 No Content\r\n\r\n", "strict 204 "), (ok + "X-Odd: a\0\r\n\r\n", "open"),
    (chunked + "5\r\nhello\r\n0\r\n\r\n", "strict 200 hello"), (chunked + "5\r\nhello\r\n", "broken"),
    (chunked + "5\r\nhell", "broken"), (chunked + "5;a=b\r\nhello\r\n0\r\n\r\n", "whole 200 hello"),
    (chunked + "g\r\nhello\r\n0\r\n\r\n", "broken"), (chunked + "5\r\nhello!\r\n0\r\n\r\n", "broken"),
    (ok + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", "broken"),
  ]

  @Test("the reference reads an HTTP/1.1 response as RFC 9112 says", arguments: answersOfHTTP1)
  func readsHTTP1(_ text: String, _ wanted: String) {
    #expect(Self.verdict(AnswerReference.read(Array(text.utf8))) == wanted)
  }

  /// An HTTP/2 frame with a payload of less than 256 bytes. `kind` is its type.
  private static func frame(_ kind: UInt8, _ flags: UInt8, _ stream: UInt8, _ payload: [UInt8] = [])
    -> [UInt8]
  {
    [0, 0, UInt8(payload.count), kind, flags, 0, 0, 0, stream] + payload
  }

  /// A HEADERS frame on stream 1 with the status 200.
  private static let head: [UInt8] = frame(1, 0x4, 1, [0x88])
  /// A DATA frame with the body "hello", which ends stream 1.
  private static let body: [UInt8] = frame(0, 0x1, 1, Array("hello".utf8))
  /// Two HEADERS frames with the status 200. One has the Content-Length 5, the other 6, as a literal field
  /// without indexing (RFC 7541, section 6.2.2).
  private static let lengths: [[UInt8]] = ([0x35, 0x36] as [UInt8]).map {
    frame(1, 0x4, 1, [0x88, 0x0f, 0x0d, 0x01, $0])
  }

  /// The frames of HTTP/2 responses, each list with the right result of the reference, as in `verdict`.
  private static let answersOfHTTP2: [([[UInt8]], String)] = [
    ([head, body], "strict 200 hello"), ([head, frame(0, 0, 1, [0x61])], "broken"), ([body], "broken"),
    ([lengths[0], body], "strict 200 hello"), ([lengths[1], body], "broken"),
    ([lengths[0], frame(0, 0, 1, Array("hello".utf8))], "whole 200 hello"),
    ([head, frame(6, 0, 0, Array("12345678".utf8)), body], "strict 200 hello"),
    ([head, frame(6, 0, 0, Array("1234567".utf8)), body], "broken"),
    ([head, frame(1, 0x8, 3), body], "broken"),
    ([head, frame(4, 0, 0, [0, 4, 0x80, 0, 0, 0]), body], "broken"),
    ([head, frame(4, 0, 0, [0, 4, 0, 0, 0, 1]), body], "strict 200 hello"),
    ([head, frame(7, 0, 1, [0, 0, 0, 1, 0, 0, 0, 0]), body], "broken"),
    ([head, frame(3, 0, 1, [0, 0, 0, 8])], "broken"),
    ([head, frame(0xbb, 0xff, 1), body], "strict 200 hello"),
    ([frame(1, 0, 1, [0x88]), body], "broken"), ([frame(1, 0x4, 1, [0xff]), body], "broken"),
    ([frame(1, 0x4, 1, [0x08, 0x82, 0x10, 0x01]), body], "strict 200 hello"),
    ([head, frame(0, 0x9, 1, [2, 0x61, 0, 0])], "strict 200 a"),
    ([head, frame(0, 0x9, 1, [3, 0x61, 0])], "broken"),
  ]

  @Test("the reference reads an HTTP/2 response as RFC 9113 says", arguments: answersOfHTTP2)
  func readsHTTP2(_ frames: [[UInt8]], _ wanted: String) {
    #expect(Self.verdict(FrameReference.read(Array(frames.joined()))) == wanted)
  }

  /// The outcome of a request that got a response.
  private static func answer(_ status: Int, _ body: String, _ fields: HeaderFields = [:])
    -> AnswerProbe.Outcome
  {
    .answer(ResponseHead(status: status, fields: fields), body: Array(body.utf8))
  }

  /// The outcome of a request that failed with this code.
  private static func failure(_ code: NetOptError.Code) -> AnswerProbe.Outcome {
    .failure(NetOptError(code, phase: .receive, ""))
  }

  @Test("an outcome that the reference does not allow is a fault")
  func outcomesAreJudged() {
    let strict = AnswerReference.read(Array((Self.ok + "Content-Length: 5\r\n\r\nhello").utf8))
    let right: HeaderFields = ["Content-Length": "5"]
    #expect(AnswerRules.fault(strict, Self.answer(200, "hello", right)) == nil)
    let wrong: [AnswerProbe.Outcome] = [
      Self.answer(200, "hell", right), Self.answer(200, "hello!", right), Self.answer(404, "hello", right),
      Self.answer(200, "hello"), Self.failure(.receiveFailed), .hang, .fault("none"),
    ]
    for outcome in wrong { #expect(AnswerRules.fault(strict, outcome) != nil) }
    let broken = ReferenceAnswer.broken("it is cut")
    #expect(AnswerRules.fault(broken, Self.failure(.receiveFailed)) == nil)
    for outcome in [Self.answer(200, ""), Self.failure(.timeout), .hang] {
      #expect(AnswerRules.fault(broken, outcome) != nil)
    }
    #expect(AnswerRules.fault(.open, Self.answer(200, "hello")) == nil)
    #expect(AnswerRules.fault(.open, Self.failure(.timeout)) != nil)
  }
}
