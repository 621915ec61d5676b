import NetOptCore

/// Generates random responses of a server. Most are nearly right, so that they get deep into a parser. The
/// same seed gives the same response.
package struct AnswerMaker {
  /// The source of all random choices.
  var random: SplitMix64

  /// Generates an input for a target; returns `nil` when the inputs of the target are not responses.
  package static func input(for target: FuzzTarget, seed: UInt64) -> [UInt8]? {
    var maker = AnswerMaker(random: SplitMix64(seed: seed))
    var bytes: [UInt8]
    switch target {
    case .heads: bytes = maker.head()
    case .chunks: bytes = maker.chunks(of: maker.body())
    case .frames: bytes = maker.frames()
    default: return nil
    }
    while maker.isOnce(in: 4) { InputMutation.mutate(&bytes, [], &maker.random) }
    // Sends only the first bytes of the response, as if the connection ended early.
    if maker.isOnce(in: 6) { bytes = Array(bytes.prefix(maker.number(below: bytes.count + 1))) }
    return bytes
  }

  /// Returns a random number from 0 to `bound` - 1.
  mutating func number(below bound: Int) -> Int { Int(random.below(UInt64(bound))) }

  /// Returns true in one of `times` calls, on average.
  mutating func isOnce(in times: Int) -> Bool { number(below: times) == 0 }

  mutating func pick<Element>(_ elements: [Element]) -> Element { elements[number(below: elements.count)] }

  /// Generates a body of consecutive byte values: mostly less than 30 bytes, at times up to 4,999.
  mutating func body() -> [UInt8] {
    let count = isOnce(in: 20) ? number(below: 5000) : number(below: 30)
    let first = UInt8(truncatingIfNeeded: random.next())
    return (0..<count).map { first &+ UInt8(truncatingIfNeeded: $0) }
  }

  // MARK: HTTP/1.1

  /// Status lines other than that of a usual response. Some are valid.
  private static let oddStatusLines = [
    "HTTP/1.1 404 Not Found", "HTTP/1.0 200 OK", "HTTP/1.1 204 No Content", "HTTP/1.1 304 Not Modified",
    "HTTP/1.1 301 Moved", "HTTP/1.1 503 Unavailable", "HTTP/1.1 200", "HTTP/1.1 200 ", "HTTP/1.1  200 OK",
    "HTTP/1.1\t200 OK", "HTTP/1.1 099 Odd", "HTTP/1.1 2000 Odd", "HTTP/1.1 20 Odd", "HTTP/1.1 200OK",
    "HTTP/1.1 999 Odd", "HTTP/1.1 +200 OK", "HTTP/2 200 OK", "HTTP/2.0 200 OK", "HTTP/1.2 200 OK",
    "HTTP/0.9 200 OK", "HTTP/1.10 200 OK", "http/1.1 200 OK", " HTTP/1.1 200 OK", "", "ICY 200 OK",
    "HTTP/1.1 101 Switching Protocols", "HTTP/1.1 199 Odd", "GET / HTTP/1.1",
  ]
  /// Status lines of interim responses (1xx).
  private static let interimLines = [
    "HTTP/1.1 100 Continue", "HTTP/1.1 103 Early Hints", "HTTP/1.0 100 Continue",
  ]
  /// Valid field lines that do not affect the end of the body.
  private static let fields = [
    "Cache-Control: max-age=60", "Set-Cookie: a=b", "Location: /elsewhere", "ETag: \"a\"", "X-Empty:",
    "X-Spaces: \t a  b \t", "X-8-Bit: \u{e4}", "Connection: close", "Connection: keep-alive",
    "Trailer: X-Trailer",
    "Date: Thu, 01 Jan 1970 00:00:00 GMT",
  ]
  /// Field lines that are invalid, or that need special treatment.
  private static let oddFields = [
    " folded: one", "\tfolded", "X Odd: one", "X-Odd : one", ": one", "no colon", "X-Nul: a\0b", "X-Cr: a\rb",
    "HTTP/1.1 404 Not Found", "Connection: Upgrade", "Upgrade: h2c", "Content-Encoding: gzip",
    "Content-Range: bytes 0-3/10", "X-Control: \u{1}", "Content-Length", "Transfer-Encoding", "\u{e4}: one",
    "Alt-Svc: h2=\":1\"", "WWW-Authenticate: Basic realm=a",
  ]
  /// Values of `Transfer-Encoding`, valid and invalid.
  private static let codings = [
    "chunked", "Chunked", "gzip, chunked", "chunked, chunked", "identity", "chunked, gzip", "xchunked",
    "chunked;a=b",
    ", chunked", "", "chunked,", "\tchunked ", "gzip",
  ]

  /// Generates a whole HTTP/1.1 response: interim responses, a head and a body.
  private mutating func head() -> [UInt8] {
    var bytes: [UInt8] = []
    while isOnce(in: 6) {
      append(pick(Self.interimLines), to: &bytes)
      while isOnce(in: 3) { append(pick(isOnce(in: 4) ? Self.oddFields : Self.fields), to: &bytes) }
      append("", to: &bytes)
    }
    append(isOnce(in: 4) ? pick(Self.oddStatusLines) : "HTTP/1.1 200 OK", to: &bytes)
    let body = body()
    let isChunked = isOnce(in: 3)
    var lines: [String] = []
    if isChunked {
      lines.append("Transfer-Encoding: \(isOnce(in: 3) ? pick(Self.codings) : "chunked")")
    }
    if isOnce(in: isChunked ? 8 : 2) { lines.append("Content-Length: \(length(body.count))") }
    if isOnce(in: 12) { lines.append("content-length: \(length(body.count))") }
    while !isOnce(in: 3) { lines.append(pick(Self.fields)) }
    while isOnce(in: 5) { lines.append(pick(Self.oddFields)) }
    if isOnce(in: 20) { lines.append("X-Long: \(String(repeating: "a", count: number(below: 9000)))") }
    lines.shuffle(using: &random)
    for line in lines { append(line, to: &bytes) }
    append("", to: &bytes)
    bytes += isChunked ? chunks(of: body) : body
    if isOnce(in: 10) { bytes += pick([body, Array("HTTP/1.1 200 OK\r\n\r\n".utf8), [0x0d, 0x0a], [0x00]]) }
    return bytes
  }

  /// Returns a value of `Content-Length` for a body of `count` bytes: the right number, or in one of four
  /// cases another number or text, valid or not.
  private mutating func length(_ count: Int) -> String {
    guard isOnce(in: 4) else { return "\(count)" }
    return pick([
      "0\(count)", "+\(count)", "-\(count)", "\(count), \(count)", "\(count),", "\(count + 1)",
      "\(max(count - 1, 0))", "\(count) \(count)", "0x\(count)", "", "1\(String(repeating: "0", count: 30))",
      "18446744073709551616", "9223372036854775807", "\(count)a", " \(count) ", "\t\(count)", "\"\(count)\"",
    ])
  }

  /// Appends a line with its end: CR LF, or seldom another end.
  private mutating func append(_ line: String, to bytes: inout [UInt8]) {
    bytes += line.utf8
    bytes += isOnce(in: 60) ? pick([[0x0a], [0x0d, 0x0d, 0x0a], [0x0d]]) : [0x0d, 0x0a]
  }

  /// Encodes a body as chunks, with the last chunk and trailers. Some sizes and line ends are wrong.
  private mutating func chunks(of body: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = body[...]
    while !rest.isEmpty {
      let count = 1 + number(below: rest.count)
      append(size(count), to: &bytes)
      bytes += rest.prefix(count)
      append("", to: &bytes)
      rest = rest.dropFirst(count)
    }
    append(
      isOnce(in: 8)
        ? pick(["00", "0;a", "0 ", " 0", "", "-0", "0x0", "0x5", "0g", "0 5", "0\r", "000000000000000000"])
        : "0", to: &bytes
    )
    while isOnce(in: 6) { append(pick(Self.fields + Self.oddFields + ["Content-Length: 3"]), to: &bytes) }
    append("", to: &bytes)
    return bytes
  }

  /// Returns the line before a chunk of `count` bytes: the size in hexadecimal, or in one of eight cases a
  /// variant of it, valid or not.
  private mutating func size(_ count: Int) -> String {
    let digits = String(count, radix: 16, uppercase: isOnce(in: 3))
    guard isOnce(in: 8) else { return digits }
    return pick([
      "0\(digits)", "\(digits);name=value", "\(digits);name=\"a;b\"", "\(digits) ", " \(digits)",
      "\(digits)g",
      "0x\(digits)", "+\(digits)", "-\(digits)", String(count + 1, radix: 16), String(count - 1, radix: 16),
      "1\(String(repeating: "0", count: 15))\(digits)", "1\(String(repeating: "0", count: 16))\(digits)",
      "\(String(repeating: "0", count: 20))\(digits)", "", ";", "ffffffffffffffff", "7fffffffffffffff",
    ])
  }
}
