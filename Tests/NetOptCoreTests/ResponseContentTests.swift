import NetOptLocking
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCore

/// Tests the content of responses as text, lines and values.
@Suite struct ResponseContentTests {
  private static func response(
    _ body: [UInt8], _ type: String? = nil, status: Int = 200
  ) throws -> NetOptResponse {
    var headers: HeaderFields = [:]
    if let type { headers["Content-Type"] = type }
    return NetOptResponse(
      url: try HTTPURL("https://a.test/b?password=geheim"), status: status, headers: headers,
      body: ResponseBody(body))
  }

  @Test(
    "text follows the charset of the response",
    arguments: [
      ("text/plain", [0x68, 0xc3, 0xa4], "hä"), (nil, [0xef, 0xbb, 0xbf, 0x68], "h"),
      ("text/plain;charset=UTF-8", [0xff, 0x68], "\u{fffd}h"),
      ("text/html; a=b ; Charset = \"iso-8859-1\" ", [0xe4, 0x68], "äh"),
      ("text/plain; charset=latin1", [0xef, 0xbb, 0xbf], "ï»¿"),
      ("text/plain; charset=US-ASCII", [0x68], "h"), ("text/plain; charset=\"utf-8\"", [0x68], "h"),
      ("text/plain; charset", [0x68], "h"), (";;=;charset=utf8", [], ""),
      ("text/plain; name=\"x; charset=utf-16\"; charset=\"\"", [0x68], "h"),
      ("text/plain; charset=utf-8, text/html; charset=utf-16", [0x68], "h"),
    ] as [(String?, [UInt8], String)])
  func text(_ type: String?, _ bytes: [UInt8], _ text: String) async throws {
    #expect(try await Self.response(bytes, type).text() == text)
  }

  @Test("text refuses other charsets and bodies above its limit")
  func refusedText() async throws {
    for charset in [
      "utf-16", "\"" + String(repeating: "y", count: 60) + "\"",
      "x" + String(repeating: "\u{301}", count: 100_000),
    ] {
      let error = await #expect(throws: NetOptError.self) {
        try await Self.response([1], "text/plain; charset=\(charset)").text()
      }
      #expect(error?.code == .decodeFailed)
      let name = charset.replacing("\"", with: "").printable(42)
      #expect(error?.message.contains("has the charset \(name), which") == true)
    }
    let error = await #expect(throws: NetOptError.self) { try await Self.response([1, 2]).text(upTo: 1) }
    #expect(error?.code == .bodyTooLarge)
  }

  private struct User: Decodable, Equatable {
    let id: Int
    let names: [String]
  }

  @Test("decode returns the value, or says where the JSON differs, without its values")
  func decode() async throws {
    let user = try await Self.response(Array(#"{"id": 7, "names": ["a"], "more": null}"#.utf8)).decode(
      User.self)
    #expect(user == User(id: 7, names: ["a"]))
    for (json, reason) in [
      (#"{"names": ["geheim"]}"#, "$.id is missing"),
      (#"{"id": "geheim", "names": []}"#, "$.id is not a number"),
      (#"{"id": 1, "names": ["geheim", 2]}"#, "$.names[1] is not a string"),
      (#"{"id": null, "names": []}"#, "$.id is null or missing"),
      ("geheim", "it is not JSON, or $ has a wrong value"),
      ("", "it is empty"), ("[]", "$ is not an object"),
      (#"{"id": 1, "names": {}}"#, "$.names is not an array"),
    ] {
      let error = await #expect(throws: NetOptError.self) {
        try await Self.response(Array(json.utf8)).decode(User.self)
      }
      #expect(error?.code == .decodeFailed)
      let size = json.utf8.count
      #expect(
        error?.message
          == "the response of https://a.test/b?password=[hidden] (status 200, \(size) bytes) is not the expected JSON: \(reason)"
      )
    }
  }

  @Test("requireSuccess keeps the status and the first 64 KiB of the body", arguments: [404, 429, 503])
  func requireSuccess(_ status: Int) async throws {
    let good = try await Self.response([1], status: 299).requireSuccess()
    #expect(try await good.body.collect(upTo: 1) == [1])
    let body = Chunks(Array(repeating: [UInt8](repeating: 7, count: 40_000), count: 5))
    var response = try Self.response([], status: status)
    response.body = ResponseBody(body)
    let bad = response
    let error = await #expect(throws: NetOptError.self) { try await bad.requireSuccess() }
    #expect(error?.code == .unexpectedStatus && error?.status == status)
    #expect(error?.responseBody == [UInt8](repeating: 7, count: 65_536))
    #expect(body.left == 3, "the rest of the body is not read")
    #expect(error?.isRetryable == (status == 429))
    #expect(error?.localizedDescription == "https://a.test/b?password=[hidden] was answered \(status)")
    #expect(error?.with(otherAttempts: [], adding: "so").status == status)

    response.body = ResponseBody(
      Chunks([[1, 2]], failure: NetOptError(.receiveFailed, phase: .receive, "the connection ended")))
    let cut = response
    let cutError = await #expect(throws: NetOptError.self) { try await cut.requireSuccess() }
    #expect(cutError?.code == .unexpectedStatus && cutError?.responseBody == [1, 2])

    response.body = ResponseBody(
      Chunks([[1]], failure: NetOptError(.cancelled, phase: .receive, "the task was cancelled")))
    let cancelled = response
    let cancellation = await #expect(throws: NetOptError.self) { try await cancelled.requireSuccess() }
    #expect(cancellation?.code == .cancelled)

    var text = ""
    dump(error, to: &text)
    #expect(text.contains("unexpected-status") && !text.contains("- 7"), "a dump does not show the body")
  }

  @Test("the lines are those of the whole text, however it is cut into chunks", arguments: UInt64(1)...50)
  func lines(seed: UInt64) async throws {
    var random = SplitMix64(seed: seed)
    let pieces = ["\n", "\r\n", "\r", "a", "ä", "😀", "\u{0}", "bcd"]
    let text = (0..<random.below(60)).map { _ in pieces.randomElement(using: &random)! }.joined()
    var chunks: [[UInt8]] = [[]]
    for byte in text.utf8 {
      if random.below(4) == 0 { chunks.append([]) }
      chunks[chunks.count - 1].append(byte)
    }
    var expected = text.utf8.split(separator: 0x0a, omittingEmptySubsequences: false)
    if expected.last?.isEmpty == true { expected.removeLast() }
    if random.below(4) == 0 { chunks.insert([0xef, 0xbb], at: 0); chunks.insert([0xbf], at: 1) }
    var lines: [String] = []
    for try await line in ResponseBody(Chunks(chunks)).lines { lines.append(line) }
    #expect(lines == expected.map { String(decoding: $0.last == 0x0d ? $0.dropLast() : $0, as: UTF8.self) })
  }

  @Test("lines throw the error of the body after the whole lines, and refuse a line above 1 MiB")
  func refusedLines() async throws {
    let failure = NetOptError(.receiveFailed, phase: .receive, "the connection ended")
    var lines = ResponseBody(Chunks([[0x61, 0x0a, 0x62]], failure: failure)).lines.makeAsyncIterator()
    #expect(try await lines.next() == "a")
    do {
      let line = try await lines.next()
      Issue.record("a cut line counts as whole: \(line ?? "none")")
    } catch { #expect((error as? NetOptError)?.code == .receiveFailed) }

    let chunk = [UInt8](repeating: 0x61, count: 1 << 18)
    let endless = Chunks(Array(repeating: chunk, count: 100))
    do {
      for try await _ in ResponseBody(endless).lines { Issue.record("a line") }
      Issue.record("no error")
    } catch { #expect(error.code == .bodyTooLarge) }
    #expect(endless.left == 95)
    #expect(try await lines.next() == nil, "an error is the last result")
    var count = 0
    for try await line in ResponseBody(Chunks([chunk, chunk, chunk, chunk, [0x0a]])).lines {
      count += line.utf8.count
    }
    #expect(count == 1 << 20)
  }

  @Test("the description of a response has no secrets")
  func description() throws {
    let response = try Self.response([], "text/plain", status: 204)
    #expect(response.description == "204 https://a.test/b?password=[hidden] (HTTP/1.1)")
    var text = ""
    dump(response, to: &text)
    #expect(text.contains("Content-Type") && !text.contains("geheim") && !text.contains("text/plain"))
  }
}
