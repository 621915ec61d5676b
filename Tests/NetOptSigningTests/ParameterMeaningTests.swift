import NetOptCore
import Testing

@testable import NetOptSigning

/// The verifier refuses a request whose query or target was changed after signing, if a common parser gives
/// the new one another meaning.
@Suite struct ParameterMeaningTests {
  /// The time of signing and of verification, in seconds since 1970.
  private static let now: Int64 = 1_700_000_000
  private static let key = SigningKey(
    id: "app1.v2", secret: Array("netopt-test-secret".utf8), salt: "salt-2024", schemes: [.netopt1])

  /// What a query means to servers. When a key occurs several times, a server may use its first value, its
  /// last value, or all its values. Two queries mean the same only when they do so to each of these servers.
  private struct Meaning: Equatable {
    /// The first value of each key. Keys and values are decoded bytes.
    var first: [[UInt8]: [UInt8]] = [:]
    /// The last value of each key.
    var last: [[UInt8]: [UInt8]] = [:]
    /// All values of each key, in their order.
    var all: [[UInt8]: [[UInt8]]] = [:]

    /// Parses a query like a form: "&" separates the pieces, a "+" is a space, and a "%" without two
    /// hexadecimal digits after it stands for itself.
    init(_ query: String) {
      for piece in query.utf8.split(separator: 0x26, omittingEmptySubsequences: false) where !query.isEmpty {
        let mark = piece.firstIndex(of: 0x3d)
        let key = Self.decoded(piece[..<(mark ?? piece.endIndex)])
        let value = mark.map { Self.decoded(piece[$0...].dropFirst()) } ?? []
        if first[key] == nil { first[key] = value }
        last[key] = value
        all[key, default: []].append(value)
      }
    }

    /// Percent-decodes bytes once. `plus` says whether a "+" is a space.
    static func decoded(_ bytes: Substring.UTF8View, plus: Bool = true) -> [UInt8] {
      let bytes = Array(bytes)
      var out: [UInt8] = []
      var index = 0
      while index < bytes.count {
        if bytes[index] == 0x25, index + 2 < bytes.count,
          let byte = UInt8(String(decoding: bytes[index + 1...index + 2], as: UTF8.self), radix: 16),
          bytes[index + 1] != 0x2b
        {
          out.append(byte)
          index += 3
        } else {
          out.append(plus && bytes[index] == 0x2b ? 0x20 : bytes[index])
          index += 1
        }
      }
      return out
    }
  }

  /// What a request target means to servers. To some a "#" ends the target, to others it is an ordinary byte.
  /// To some a "\" in the path is an ordinary byte, to others a slash.
  private struct TargetMeaning: Equatable {
    /// What the target means to one kind of server.
    private struct Reading: Equatable {
      /// The segments of the path, percent-decoded once.
      var segments: [[UInt8]]
      var query: Meaning

      init(_ target: String) {
        let mark = target.utf8.firstIndex(of: 0x3f) ?? target.utf8.endIndex
        segments = target.utf8[..<mark].split(separator: 0x2f, omittingEmptySubsequences: false)
          .map { Meaning.decoded($0, plus: false) }
        query = Meaning(String(Substring(target.utf8[mark...].dropFirst())))
      }
    }

    /// Three readings of the target: as it is, with each "\" in the path as a slash, and up to the first "#".
    private let readings: [Reading]

    /// Parses a path and a query in the form that they have in a message.
    init(_ target: String) {
      let mark = target.utf8.firstIndex(of: 0x3f) ?? target.utf8.endIndex
      let slashed = target[..<mark].replacing("\\", with: "/") + target[mark...]
      readings = [target, String(slashed), String(Substring(target.utf8.prefix { $0 != 0x23 }))].map {
        Reading($0)
      }
    }
  }

  /// An unsigned request with this query.
  private func request(_ query: String) -> SigningRequest {
    SigningRequest(
      method: "GET", scheme: .https, authority: "api.example.com", path: "/user", query: query, headers: [:],
      body: [])
  }

  /// A request with this query and a signature of netopt1.
  private func signed(_ query: String) throws -> SigningRequest {
    var request = request(query)
    for field in try NetOpt1().sign(request, with: Self.key, at: SigningMoment(now: Self.now)).headers {
      request.headers[field.name] = field.value
    }
    return request
  }

  /// The reason that the verifier gives for a request.
  private func reason(_ request: SigningRequest) -> VerificationReport.Reason {
    SignatureVerifier(keys: KeyRing([Self.key]), nonces: nil).verify(
      request, scheme: NetOpt1(), .init(now: Self.now)
    ).reason
  }

  // MARK: Random queries

  /// Keys of the random queries, as they are written.
  private static let keys = ["role", "a", "b", "", "%61", "a%5B%5D"]
  /// Parts of the values of the random queries, as they are written.
  private static let values = [
    "user", "admin", "", "1", "%20", "+", "%2B", "%26", "%3D", "%25", "%C3%A9", "é", "=", "%7A",
  ]

  /// Makes a random query.
  private func query(_ random: inout SplitMix64) -> String {
    (0...random.below(5)).map { _ in
      let key = Self.keys.randomElement(using: &random) ?? ""
      guard random.below(6) > 0 else { return key }
      return key + "="
        + (0..<random.below(3)).map { _ in Self.values.randomElement(using: &random) ?? "" }.joined()
    }.joined(separator: "&")
  }

  /// The query with one random change; `nil` when the change is not possible or the result is not UTF-8.
  private func changed(_ query: String, _ random: inout SplitMix64) -> String? {
    var pieces = query.split(separator: "&", omittingEmptySubsequences: false).map { String($0) }
    let index = Int(random.below(UInt64(pieces.count)))
    let other = Int(random.below(UInt64(pieces.count)))
    var bytes = Array(query.utf8)
    let byte = bytes.isEmpty ? 0 : Int(random.below(UInt64(bytes.count)))
    switch random.below(9) {
    case 0: pieces.swapAt(index, other)
    case 1: pieces.insert(pieces[index], at: other)
    case 2: pieces.remove(at: index)
    case 3: pieces[index] += Self.values.randomElement(using: &random) ?? ""
    case 4: pieces.insert("role=admin", at: index)
    case 5: pieces.reverse()
    case 6:
      guard !bytes.isEmpty else { return nil }
      bytes[byte] = Array("%=&+aZ09; ".utf8).randomElement(using: &random) ?? 0x25
      return String(validating: bytes, as: UTF8.self)
    case 7:
      bytes.insert(Array("%=&+a".utf8).randomElement(using: &random) ?? 0x25, at: byte)
      return String(validating: bytes, as: UTF8.self)
    default:
      guard !bytes.isEmpty else { return nil }
      bytes.remove(at: byte)
      return String(validating: bytes, as: UTF8.self)
    }
    return pieces.joined(separator: "&")
  }

  @Test(
    "a query with another meaning is refused, and one with the same meaning is valid",
    arguments: 1...20 as ClosedRange<UInt64>)
  func meanings(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    var differing = 0
    var equal = 0
    for _ in 0..<500 {
      let query = query(&random)
      var request = try signed(query)
      #expect(reason(request) == .ok, "seed \(seed): \(query)")
      for _ in 0..<4 {
        guard let changed = changed(query, &random), changed != query else { continue }
        request.query = changed
        if PercentEncoding.fault(in: changed) != nil {
          #expect(reason(request) == .malformedRequest, "seed \(seed): \(query) became \(changed)")
        } else if Meaning(changed) != Meaning(query) {
          differing += 1
          #expect(reason(request) == .signatureMismatch, "seed \(seed): \(query) became \(changed)")
        } else {
          equal += 1
          #expect(reason(request) == .ok, "seed \(seed): \(query) became \(changed)")
        }
      }
    }
    #expect(differing > 500)
    #expect(equal > 10)
  }

  // MARK: Random targets

  /// Segments of the paths of the random targets, as they are written.
  private static let segments = [
    "user", "a", "admin", "", "..", "%2e", "%5C", "%23", "%2F", "%3F", "%3b", "é", "a+b",
  ]

  /// Makes a random target: a path, mostly with a query.
  private func target(_ random: inout SplitMix64) -> String {
    let path = (0...random.below(3)).map { _ in "/" + (Self.segments.randomElement(using: &random) ?? "") }
    return path.joined() + (random.below(4) == 0 ? "" : "?" + query(&random))
  }

  /// The target with a random change after its first slash; `nil` when the change is not possible or the
  /// result is not UTF-8.
  private func changedTarget(_ target: String, _ random: inout SplitMix64) -> String? {
    var bytes = Array(target.utf8)
    let offset = 1 + Int(random.below(UInt64(bytes.count)))
    let marks = ["#", "\\", "#&role=admin", "?role=admin#", "/", ";", "&", "?", "%23", "%5C", "%2F", "a"]
    let mark = Array((marks.randomElement(using: &random) ?? "").utf8)
    switch random.below(4) {
    case 0: bytes.insert(contentsOf: mark, at: offset)
    case 1: bytes.replaceSubrange(offset..<min(offset + 1, bytes.count), with: mark)
    case 2:
      // Decodes "%5C" to a backslash.
      guard let found = bytes[offset...].firstRange(of: [0x25, 0x35, 0x43]) else { return nil }
      bytes.replaceSubrange(found, with: [0x5c])
    default: bytes += mark
    }
    return String(validating: bytes, as: UTF8.self)
  }

  /// The host of all requests.
  private static let authority = "api.example.com"

  /// The header fields with the signature of a GET of the target.
  private func fields(signing target: String) throws -> [HeaderField] {
    var request = request("")
    request.set(target: target)
    return try NetOpt1().sign(request, with: Self.key, at: SigningMoment(now: Self.now)).headers
  }

  /// The reason that the verifier gives for a GET with this target and these fields. `absolute` says whether
  /// the request line has a whole URL.
  private func reason(_ target: String, absolute: Bool, _ fields: [HeaderField]) -> VerificationReport.Reason
  {
    let fields = fields.map { "\($0.name): \($0.value)\r\n" }.joined()
    let start = absolute ? "https://\(Self.authority)" : ""
    do throws(SigningFault) {
      let message = "GET \(start)\(target) HTTP/1.1\r\nHost: \(Self.authority)\r\n\(fields)\r\n"
      return reason(try SigningRequest(http: Array(message.utf8), scheme: .https))
    } catch {
      return error.reason
    }
  }

  @Test(
    "a target that a server may read as another one is refused, in both forms of a request line",
    arguments: 1...20 as ClosedRange<UInt64>)
  func targets(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    var counts: [VerificationReport.Reason: Int] = [:]
    for _ in 0..<500 {
      let target = target(&random)
      let fields = try fields(signing: target)
      for absolute in [false, true] {
        #expect(reason(target, absolute: absolute, fields) == .ok, "seed \(seed): \(target)")
      }
      for _ in 0..<4 {
        guard let changed = changedTarget(target, &random) else { continue }
        let isRefused =
          changed.utf8.contains { $0 == 0x23 || $0 == 0x5c } || PercentEncoding.fault(in: changed) != nil
        let isSame = TargetMeaning(changed) == TargetMeaning(target)
        let wanted: VerificationReport.Reason =
          isRefused ? .malformedRequest : isSame ? .ok : .signatureMismatch
        let got = reason(changed, absolute: Bool.random(using: &random), fields)
        counts[got, default: 0] += 1
        #expect(got == wanted, "seed \(seed): \(target) became \(changed)")
      }
    }
    #expect(counts[.malformedRequest, default: 0] > 100 && counts[.signatureMismatch, default: 0] > 100)
    #expect(counts[.ok, default: 0] > 10, "\(counts)")
  }

  @Test(
    "a raw # in a URL or in a request target is refused, in every scheme",
    arguments: ["/a#", "/a?b=c#d", "/#?b", "#a", "?a#", "/a?b#&role=admin"])
  func fragments(target: String) throws {
    #expect(throws: NetOptError.self) { try SigningRequest("GET", "https://\(Self.authority)\(target)") }
    for scheme in SchemeName.allCases {
      var request = request("")
      request.set(target: target)
      let made = try SchemeOptions.scheme(scheme, nil, isLenient: true, keys: KeyRing([Self.key]))
      let report = SignatureVerifier(keys: KeyRing([Self.key]), nonces: nil).verify(request, scheme: made)
      #expect(report.reason == .malformedRequest, "\(scheme)")
    }
  }

  // MARK: Lists of docs/signing.md

  @Test(
    "a signature is valid for a target that counts as the same",
    arguments: [
      ("/a?a", "/a?a="), ("/a?", "/a"), ("/a?a=1&b=2", "/a?b=2&a=1"), ("/a?q=a+b", "/a?q=a%20b"),
      ("/a?q=a b", "/a?q=a%20b"),
      ("/a?q=%c3%a9", "/a?q=%C3%A9"), ("/a?q=é", "/a?q=%C3%A9"), ("/a?q=%61", "/a?q=a"),
      ("/a?a=1;b=2", "/a?a=1%3Bb=2"), ("/a;b=1", "/a%3Bb=1"), ("/a,b:c", "/a%2Cb%3Ac"),
      ("/a?q=/:?@", "/a?q=%2F%3A%3F%40"), ("/a/../b", "/a/%2e%2E/b"), ("/a+b", "/a%2Bb"),
      ("/a?a=1&&b=2", "/a?&a=1&b=2"), ("/a?a=1&&b=2", "/a?b=2&a=1&="),
      ("/a?&a=1", "/a?=&a=1"), ("/a?a=1&", "/a?a=1&="),
      ("/a?role=1&Role=2", "/a?Role=2&role=1"), ("/a?a.b=1&a_b=2", "/a?a_b=2&a.b=1"),
      ("/a?a[]=1&a=2", "/a?a=2&a%5B%5D=1"), ("/a?a[0]=1&a[]=2", "/a?a[]=2&a[0]=1"),
    ])
  func equivalents(one: String, other: String) throws {
    let fields = try fields(signing: one)
    for absolute in [false, true] { #expect(reason(other, absolute: absolute, fields) == .ok) }
  }

  @Test(
    "a signature is not valid for a target that counts as different",
    arguments: [
      ("/a?a=1&a=2", "/a?a=2&a=1"), ("/a?a=1&&b=2", "/a?a=1&b=2"), ("/a?role=1", "/a?Role=1"),
      ("/a?a.b=1", "/a?a_b=1"), ("/a?a[]=1", "/a?a=1"), ("/a?a[]=1", "/a?a[0]=1"), ("/a/b", "/a%2Fb"),
      ("/a?b=c%26d=e", "/a?b=c&d=e"), ("/a?b%3Dc", "/a?b=c"), ("/a%3Fb", "/a?b"), ("/a+b", "/a%20b"),
      ("/a?q=%2B", "/a?q=+"), ("/a//b", "/a/b"), ("/a/../b", "/b"), ("/a/", "/a"), ("/A", "/a"),
      ("/a?q=%25", "/a?q=%2525"), ("/a?q=e\u{301}", "/a?q=é"),
    ])
  func differences(one: String, other: String) throws {
    for (one, other) in [(one, other), (other, one)] {
      let fields = try fields(signing: one)
      #expect(reason(other, absolute: false, fields) == .signatureMismatch)
    }
  }

  @Test("netopt1 does not sign the URL scheme, the HTTP version, the body framing or fields such as Cookie")
  func unsigned() throws {
    var request = request("a=1")
    request.method = "POST"
    request.headers["Content-Type"] = "text/plain"
    request.body = Array("hello".utf8)
    let fields = try NetOpt1().sign(request, with: Self.key, at: SigningMoment(now: Self.now)).headers
    let signed = fields.map { "\($0.name): \($0.value)\r\n" }.joined()
    // The reason that the verifier gives for the signed message with changes. `more` has further field lines.
    // `host` is appended to the value of the `Host` field. `body` is the end of the head and the body.
    func reason(
      _ more: String = "", version: String = "1.1", scheme: Origin.Scheme = .https, host: String = "",
      body: String = "\r\nhello", type: String = "text/plain"
    ) throws -> VerificationReport.Reason {
      let message =
        "POST /user?a=1 HTTP/\(version)\r\nHost: \(Self.authority)\(host)\r\nContent-Type: \(type)\r\n\(signed)\(more)\(body)"
      return self.reason(try SigningRequest(http: Array(message.utf8), scheme: scheme))
    }
    #expect(try reason() == .ok)
    #expect(try reason(scheme: .http) == .ok)
    #expect(try reason(scheme: .http, host: ":80") == .ok)
    #expect(try reason(scheme: .http, host: ":443") == .signatureMismatch)
    #expect(try reason(version: "1.0") == .ok)
    #expect(try reason(body: "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n") == .ok)
    for field in [
      "X-HTTP-Method-Override: DELETE", "X-Original-URL: /admin", "X-Forwarded-Host: b.test", "Cookie: a=b",
      "Accept: text/html", "Range: bytes=0-1", "If-None-Match: *",
    ] {
      #expect(try reason(field + "\r\n") == .ok, "\(field)")
    }
    #expect(try reason(type: "text/html") == .signatureMismatch)
    #expect(try reason(type: " text/plain\t") == .ok)
    #expect(try reason(type: "\r\n text/plain") == .ok)
    #expect(try reason("Content-Encoding: gzip\r\n") == .notCovered)
    #expect(try reason("Idempotency-Key: 1\r\n") == .notCovered)
  }

  /// `byte` is the position of the first wrong "%" in the path or query, counted from 1.
  @Test(
    "signer and verifier refuse a % without two hexadecimal digits after it",
    arguments: [
      ("/a", "q=%zz", 3, "query"), ("/a", "%", 1, "query"), ("/a", "q=%4", 3, "query"),
      ("/%", "q", 2, "path"),
      ("/a%2", nil, 3, "path"), ("/a", "q=%25%", 6, "query"),
    ] as [(String, String?, Int, String)])
  func stray(path: String, query: String?, byte: Int, part: String) throws {
    var request = try signed("q=1")
    request.path = path
    request.query = query
    #expect(reason(request) == .malformedRequest)
    request.headers = [:]
    let fault = #expect(throws: SigningFault.self) {
      try NetOpt1().sign(request, with: Self.key, at: SigningMoment(now: Self.now))
    }
    #expect(fault?.reason == .malformedRequest)
    #expect(fault?.detail.contains("the % at byte \(byte) of the \(part);") == true)
  }
}
