import Foundation
import NetOptCore
import NetOptCrypto
import NetOptTestSupport
import Testing

@testable import NetOptSigning

/// The verifier gives a reason for every input, and no input crashes it.
@Suite struct MalformedInputTests {
  /// The time of verification, in seconds since 1970.
  private static let now: Int64 = 1_700_000_000
  /// The golden request of netopt1 with its signature, as an HTTP message.
  private static let message = """
    POST /user/search?q=a%20b%2Bc&tag=%C3%A9&tag=x&empty= HTTP/1.1\r
    Host: API.Example.com:443\r
    content-type: application/json\r
    Authorization: NETOPT1-HMAC-SHA256 keyid=app1.v2,ts=1700000000,nonce=AAECAwQFBgcICQoLDA0ODw,headers=content-type,\
    sig=34aa7469d684228686cb97a4d4d5f06d765335c90515211c836443deb7eb68e4\r
    Content-Length: 18\r
    \r
    {"hello": "world"}
    """

  /// The reason that netopt gives for a message: that of the verifier or, when the message cannot be read,
  /// that of the fault.
  private func verdict(_ message: [UInt8]) -> VerificationReport.Reason {
    do throws(SigningFault) {
      let request = try SigningRequest(http: message, scheme: .https)
      let verifier = SignatureVerifier(keys: KeyRing([GoldenVectorTests.key]), nonces: nil)
      return verifier.verify(request, .init(now: Self.now)).reason
    } catch {
      return error.reason
    }
  }

  @Test(
    "JSON names are equal only if their bytes are, and names with a long run of combining marks are refused")
  func namesOfJSON() throws {
    func read(_ text: String) throws(JSONFault) -> Int {
      try JSONDocument.read(SecretBytes(copying: Array(text.utf8))).members().count
    }
    #expect(try read("{\"\u{e9}\": 1, \"e\u{301}\": 2}") == 2)
    #expect(throws: JSONFault.self) { try read("{\"e\u{301}\": 1, \"e\\u0301\": 2}") }
    let marks = String(repeating: "\u{301}\u{316}", count: 200_000)
    #expect(throws: JSONFault.self) { try read("{\"x\(marks)\": 1, \"y\(marks)\": 2}") }
  }

  /// A run is a long sequence of combining marks, or of the letters that form flags. Swift takes long to
  /// compare or search strings with such runs (`SlowText`).
  @Test(
    "a long run at any place of a message is refused at once", .timeLimit(.minutes(1)),
    arguments: ["\u{301}\u{316}", "\u{1f1e6}"])
  func runsInMessages(scalars: String) throws {
    let marks = String(repeating: scalars, count: 50_000)
    let head = try #require(Self.message.utf8.firstRange(of: "\r\n\r\n".utf8)).lowerBound
    for index in Self.message.utf8.indices where index <= head {
      let text = String(Self.message[..<index]) + marks + String(Self.message[index...])
      #expect(verdict(Array(text.utf8)) == .malformedRequest)
    }
    let triplets = scalars.utf8.map { "%" + String($0, radix: 16, uppercase: true) }.joined()
    let encoded = String(repeating: triplets, count: 50_000)
    let query = Self.message.replacing("?q=", with: "?X-Amz-a\(encoded)=1&X-Amz-b\(encoded)=1&q=")
    #expect(verdict(Array(query.utf8)) == .malformedRequest)
    #expect(throws: StructuredFieldFault.self) {
      try StructuredFieldParser.item("%\"e\(encoded.lowercased())\"".utf8)
    }
  }

  /// The time limit is the check: a JSON text with a long run may be refused or read, but not slowly.
  @Test(
    "a long run at any place of a JSON line or a key ring is read at once", .timeLimit(.minutes(1)),
    arguments: ["\u{301}\u{316}", "\u{1f1e6}"])
  func runsInJSON(scalars: String) throws {
    let marks = String(repeating: scalars, count: 10_000)
    let line =
      #"{"id":1,"method":"GET","url":"https://a.test/","headers":[["X","y"]],"body":"b","scheme":"netopt1","#
      + #""key_id":"k","nonce":"n","options":{"headers":["x"]},"string_to_sign":"s"}"#
    let ring =
      #"{"schema":1,"keys":[{"id":"a","secret":"s","salt":"t","schemes":["netopt1"],"note":"n","#
      + #""scopes":[{"hosts":["a.test"],"methods":["GET"],"path_prefixes":["/x"]}]}]}"#
    // Each run is inside of a string, after one of its letters.
    for text in [line, ring] {
      for index in text.indices where text[index].isLetter {
        let end = text.index(after: index)
        let changed = String(text[..<end]) + marks + String(text[end...])
        let bytes = SecretBytes(copying: Array(changed.utf8))
        if text == ring {
          _ = try? KeyRing(json: bytes)
        } else {
          _ = try? SigningLine(try JSONDocument.read(bytes))
        }
      }
    }
  }

  @Test("the message is valid with LF line ends, in chunks, and with an absolute target")
  func validForms() {
    #expect(verdict(Array(Self.message.utf8)) == .ok)
    #expect(verdict(Array(Self.message.utf8.filter { $0 != 0x0d })) == .ok)
    let chunked = Self.message.replacing("Content-Length: 18", with: "Transfer-Encoding: chunked")
      .replacing(
        "{\"hello\": \"world\"}", with: "5\r\n{\"hel\r\nd;x=1\r\nlo\": \"world\"}\r\n0\r\nX: y\r\n\r\n")
    #expect(verdict(Array(chunked.utf8)) == .ok)
    let absolute = Self.message.replacing("POST /", with: "POST https://api.example.com/")
      .replacing("Host: API.Example.com:443", with: "Host: other.example")
    #expect(verdict(Array(absolute.utf8)) == .ok)
  }

  @Test("no truncation of the message is valid")
  func truncations() {
    let bytes = Array(Self.message.utf8)
    for count in bytes.indices { #expect(verdict(Array(bytes[..<count])) != .ok, "\(count)") }
  }

  /// A body in chunks of random sizes, with extensions and trailers.
  private static func chunked(_ body: [UInt8], _ random: inout SplitMix64) -> [UInt8] {
    let end = Array((random.below(4) == 0 ? "\n" : "\r\n").utf8)
    var out: [UInt8] = []
    var rest = body[...]
    while !rest.isEmpty {
      let chunk = rest.prefix(1 + Int(random.below(UInt64(rest.count))))
      rest = rest.dropFirst(chunk.count)
      let size = String(chunk.count, radix: 16, uppercase: Bool.random(using: &random))
      out += Array((size + (random.below(3) == 0 ? ";a=b" : "")).utf8) + end + chunk + end
    }
    out += Array("0".utf8) + end
    for _ in 0..<random.below(3) { out += Array("X-Trailer: y".utf8) + end }
    return out + end
  }

  @Test(
    "a chunked message that is cut off or has extra bytes is malformed",
    arguments: 1...10 as ClosedRange<UInt64>)
  func chunkedMessagesAreWhole(_ seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let tails = ["\r\n", "\n", "0\r\n\r\n", "x", "\0", "GET /admin HTTP/1.1\r\nHost: a\r\n\r\n"]
    for _ in 0..<40 {
      let body = (0..<random.below(30)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      let request = SigningRequest(method: "POST", authority: "a.test", path: "/x", body: body)
      let signed = try NetOpt1().sign(request, with: GoldenVectorTests.key, at: GoldenVectorTests.moment)
      let fields = signed.headers.map { "\($0.name): \($0.value)\r\n" }.joined()
      let head = "POST /x HTTP/1.1\r\nHost: a.test\r\n\(fields)Transfer-Encoding: chunked\r\n\r\n"
      let message = Array(head.utf8) + Self.chunked(body, &random)
      #expect(verdict(message) == .ok, "seed \(seed): \(message)")
      let tail = Array((tails.randomElement(using: &random) ?? "").utf8)
      #expect(verdict(message + tail) == .malformedRequest, "seed \(seed): \(message) + \(tail)")
      let cut = message.prefix(head.utf8.count + Int(random.below(UInt64(message.count - head.utf8.count))))
      #expect(verdict(Array(cut)) == .malformedRequest, "seed \(seed): \(cut)")
    }
  }

  @Test(
    "the error for a message that is cut off names the part",
    arguments: [
      ("GET / HTTP/1.1\r\nHost: a", "ends the head"),
      ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5", "ends the chunked body"),
      ("GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n", "the head has a NUL"),
      (
        "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;\0\r\n",
        "the chunked body has a NUL"
      ),
    ])
  func partOfMessage(_ text: String, _ part: String) throws {
    let error = #expect(throws: NetOptError.self) { try SigningRequest(message: Array(text.utf8)) }
    #expect(error?.message.contains(part) == true, "\(error?.message ?? "")")
  }

  @Test(
    "text that is not an HTTP message is malformed",
    arguments: [
      "", "\r\n", "GET", "GET /", "GET / HTTP/1.1", "GET / HTTP/1.1\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
      "GET / HTTP/1.1\r\n Host: a\r\n\r\n", "GET / HTTP/1.1\r\nHost a\r\n\r\n",
      "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n", "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n",
      "GET x HTTP/1.1\r\nHost: a\r\n\r\n",
      "G@T / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nab",
      "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na",
      "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\na",
    ])
  func invalidMessages(_ text: String) {
    #expect(verdict(Array(text.utf8)) == .malformedRequest)
  }

  /// A component is a field or another part of the request that an RFC 9421 signature covers. The flags `sf`
  /// and `bs` have no other value than true, and exclude each other.
  @Test(
    "a flag of a component is true, and its key is a string",
    arguments: [
      #""x";sf=1"#, #""x";sf=?0"#, #""x";sf="a""#, #""x";key="k";sf=1"#, #""x";bs=1"#, #""x";bs=?0"#,
      #""x";key=k"#,
      #""x";key"#, #""x";bs;sf"#,
    ])
  func componentFlags(_ text: String) {
    #expect(throws: SigningFault.self) { try SignatureComponent(text: text) }
  }

  /// An earlier version parsed the field again for each component. With 250 components of a field of 217 KB,
  /// this took 6.5 s, before the verifier looked for the key.
  @Test("256 components of one large field and query are verified within a minute", .timeLimit(.minutes(1)))
  func manyComponentsOfOneField() throws {
    let key = SigningKey(id: "k", secret: Array(repeating: 7, count: 32), schemes: [.rfc9421])
    var options = RFC9421.Options()
    options.components = try (0..<250).flatMap { number in
      [
        try SignatureComponent(text: "x;key=\"k\(number)\""),
        try SignatureComponent(text: "\"@query-param\";name=\"k\(number)\""),
      ]
    }.suffix(256)
    let members = (0..<28_000).map { "k\($0)=\($0)" }
    let request = SigningRequest(
      method: "GET", authority: "a.test", path: "/", query: members.joined(separator: "&"),
      headers: ["X": members.joined(separator: ",")])
    let signed = try RFC9421(options).sign(request, with: key, at: SigningMoment(now: Self.now))
    var sent = request
    for field in signed.headers { sent.headers[field.name] = field.value }
    let lines = String(decoding: signed.strings.toSign, as: UTF8.self)
    #expect(lines.contains("\"x\";key=\"k249\": 249\n\"@query-param\";name=\"k249\": 249\n"))
    for ring in [KeyRing([key]), KeyRing([GoldenVectorTests.key])] {
      let verifier = SignatureVerifier(keys: ring, nonces: nil)
      let report = verifier.verify(sent, scheme: RFC9421(options), .init(now: Self.now))
      #expect(report.reason == (ring["k"] == nil ? .unknownKey : .ok), "\(report.detail)")
    }
  }

  @Test("a signer covers up to 256 fields or components, and refuses more")
  func tooManyToSign() throws {
    let key = SigningKey(
      id: "k", secret: Array(repeating: 7, count: 32), schemes: [.netopt1, .rfc9421, .sigv4])
    let ring = KeyRing([key])
    // Signs a request, and covers `count` of its fields. `options` returns the options of the scheme for a
    // JSON list of field names.
    func sign(_ count: Int, _ scheme: SchemeName, _ options: (String) -> String) throws {
      let names = (1...count).map { "x-\($0)" }
      let list = names.map { "\"\($0)\"" }.joined(separator: ",")
      let signer = try RequestSigner(keys: ring, keyID: "k", scheme: scheme, options: options(list))
      // sigv4 signs the host and the date too.
      let headers = HeaderFields(names.dropFirst(scheme == .sigv4 ? 2 : 0).map { HeaderField($0, "1") })
      _ = try signer.sign(SigningRequest("GET", "https://a.test/", headers: headers))
    }
    let cases: [(SchemeName, (String) -> String)] = [
      (.netopt1, { "{\"headers\":[\($0)]}" }), (.rfc9421, { "{\"components\":[\($0)]}" }),
      (.sigv4, { _ in "{\"region\":\"r\",\"service\":\"s\"}" }),
    ]
    for (scheme, options) in cases {
      try sign(256, scheme, options)
      for count in [257, 50_000] {
        let error = #expect(throws: NetOptError.self) { try sign(count, scheme, options) }
        #expect(error?.message.contains("256") == true, "\(error?.message ?? "")")
      }
    }
  }

  /// `salted-md5` hashes the salt in each round, and the verifier searches all versions of a key.
  @Test("a key ring has at most 10,000 keys, and secrets and salts of at most 64 KiB")
  func largeKeyRings() throws {
    func ring(_ members: [String]) throws -> KeyRing {
      let keys = members.enumerated().map { "{\"id\":\"k.\($0)\",\"schemes\":[\"netopt1\"],\($1)}" }
      let text = "{\"schema\":1,\"keys\":[\(keys.joined(separator: ","))]}"
      return try KeyRing(json: SecretBytes(copying: Array(text.utf8)))
    }
    func text(_ count: Int) -> String { String(repeating: "a", count: count) }
    for count in [65_536, 65_537] {
      for members in [
        "\"secret\":\"\(text(count))\"", "\"secret\":\"s\",\"salt\":\"\(text(count))\"",
        "\"secret_base64\":\"\(Data(text(count).utf8).base64EncodedString())\"",
      ] {
        if count == 65_536 {
          _ = try ring([members])
        } else {
          let fault = #expect(throws: JSONFault.self) { try ring([members]) }
          #expect(fault?.rule == "must have at most 64 KiB")
        }
      }
    }
    let fault = #expect(throws: JSONFault.self) {
      try ring([String](repeating: "\"secret\":\"s\"", count: 10_001))
    }
    #expect(fault?.rule == "has more than 10000 keys")
  }

  /// Each attempt of the search may hash the whole body.
  @Test("the search for a signer's mistake leaves out requests of more than 1 MiB")
  func largeSearches() throws {
    for count in [1 << 20 - 1, 1 << 20] {
      var request = GoldenVectorTests.request
      request.body = [UInt8](repeating: 0x61, count: count - 1) + [0x0a]
      let signed = try NetOpt1().sign(request, with: GoldenVectorTests.key, at: GoldenVectorTests.moment)
      for field in signed.headers { request.headers[field.name] = field.value }
      request.body.removeLast()
      var policy = SignatureVerifier.Policy()
      policy.diagnose = true
      let verifier = SignatureVerifier(keys: KeyRing([GoldenVectorTests.key]), nonces: nil, policy: policy)
      let report = verifier.verify(request, .init(now: Self.now))
      #expect(!report.isValid)
      #expect((report.nearMiss != nil) == (count < 1 << 20 - 1000), "\(count)")
    }
  }

  @Test func invalidUTF8IsMalformed() {
    #expect(
      verdict(Array("GET /".utf8) + [0xff] + Array(" HTTP/1.1\r\nHost: a\r\n\r\n".utf8)) == .malformedRequest)
  }

  @Test func largeRequestsAreVerified() throws {
    var request = GoldenVectorTests.request
    let queries = [
      String(repeating: "x", count: 1 << 20), (0..<10_000).map { "p\($0)=\($0)" }.joined(separator: "&"),
      String(repeating: "&", count: 10_000), String(repeating: "%25", count: 100_000),
    ]
    for query in queries {
      request.query = query
      let signed = try NetOpt1().sign(request, with: GoldenVectorTests.key, at: GoldenVectorTests.moment)
      var sent = request
      for field in signed.headers { sent.headers[field.name] = field.value }
      let verifier = SignatureVerifier(keys: KeyRing([GoldenVectorTests.key]), nonces: nil)
      #expect(verifier.verify(sent, .init(now: Self.now)).isValid)
    }
  }

  /// Messages, lines and fields with bytes changed, removed and doubled at random.
  @Test("mutated input crashes neither parsers nor verifier", arguments: 1...6 as ClosedRange<UInt64>)
  func mutatedInputNeverCrashes(_ seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let vectors = try VectorTests.Vectors()
    let ring = try #require(vectors.rings["main"])
    var policy = SignatureVerifier.Policy()
    policy.allowWeak = true
    policy.explain = true
    let verifier = SignatureVerifier(keys: ring, nonces: nil, policy: policy)
    let lines = Self.lines
    for _ in 0..<1500 {
      var bytes = Array(
        (random.below(3) == 0 ? Self.message : lines[Int(random.below(UInt64(lines.count)))]).utf8)
      for _ in 0...random.below(3) { Self.mutate(&bytes, &random) }
      for scheme in SchemeName.allCases {
        let made = try SchemeOptions.scheme(scheme, nil, isLenient: true, keys: ring)
        if let line = try? SigningLine(bytes) {
          _ = verifier.verify(line.request, scheme: made, .init(now: Self.now)).json(id: line.id)
        }
        if let request = try? SigningRequest(http: bytes, scheme: .https) {
          let report = verifier.verify(request, scheme: made, .init(now: Self.now))
          #expect(report.reason != .ok || scheme == .netopt1 || scheme == .saltedMD5)
        }
      }
      _ = try? StructuredFieldParser.list(bytes)
      _ = try? StructuredFieldParser.dictionary(bytes)
      _ = try? StructuredFieldParser.item(bytes)
      _ = try? KeyFile.keys(JSONDocument.read(SecretBytes(copying: bytes)))
      for shape in JSONShape.allCases { _ = shape.applied(to: bytes) }
    }
  }

  /// Valid requests as JSON lines, and a key ring. `mutate` changes their bytes.
  private static let lines = [
    #"{"id":1,"method":"POST","url":"https://api.example.com/a?b=c","headers":[["X-Netopt-Key","old"],["X-Netopt-Sig","00"]],"body":"x"}"#,
    #"{"method":"GET","url":"https://e.com/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=A%2F20150830%2Fr%2Fs%2Faws4_request&X-Amz-Date=20150830T123600Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature=00"}"#,
    #"{"method":"GET","url":"https://e.com/","headers":[["Signature-Input","a=(\"@method\" \"date\";sf);created=1700000000;keyid=\"test-shared-secret\""],["Signature","a=:AAAA:"],["Date","x"]]}"#,
    #"{"method":"GET","url":"https://e.com/","headers":[["X-Netopt-Sealed","AQtwbGF0Zm9ybS52MQAAAAAAAAAAAAAAAQAAAAAAAAAAAAAAAAAAAAAAAAAA"],["Authorization","NETOPT1-HMAC-SHA256 keyid=a,ts=1,nonce=AAECAwQFBgcICQoLDA0ODw,headers=,sig=00"]]}"#,
    #"{"schema":1,"keys":[{"id":"a","secret":"\u00e9\ud83d\ude00","schemes":["netopt1"],"scopes":[{"hosts":["a"]}]}]}"#,
  ]

  /// Changes, removes or doubles bytes at a random place, or inserts delimiters there.
  private static func mutate(_ bytes: inout [UInt8], _ random: inout SplitMix64) {
    guard !bytes.isEmpty else { return }
    let index = Int(random.below(UInt64(bytes.count)))
    switch random.below(5) {
    case 0: bytes[index] = UInt8(truncatingIfNeeded: random.next())
    case 1: bytes.remove(at: index)
    case 2: bytes.insert(bytes[index], at: index)
    case 3: bytes.removeSubrange(index..<min(index + Int(random.below(20)), bytes.count))
    default:
      bytes.insert(contentsOf: Array("\"%,;=:()\\ \0\n".utf8.shuffled(using: &random).prefix(2)), at: index)
    }
  }
}
