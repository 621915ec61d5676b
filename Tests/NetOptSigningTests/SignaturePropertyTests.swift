import NetOptCore
import NetOptCrypto
import Testing

@testable import NetOptSigning

/// Random requests in every scheme. The verifier accepts a signed request. It refuses the request when one
/// changed byte changes its meaning (`Kind.meaning`).
@Suite struct SignaturePropertyTests {
  /// The time of signing and of verification, in seconds since 1970.
  private static let now: Int64 = 1_700_000_000

  /// A scheme to test, with a key. `meaning` says which changes to a signed request the scheme must detect.
  private struct Kind: Sendable, CustomTestStringConvertible {
    /// The name in the output of the tests. `takesStrayPercents` depends on it.
    let testDescription: String
    let scheme: any SigningScheme
    /// The id of the key in `ring` that signs.
    let keyID: String
    /// Whether the scheme signs a request with a "%" that is not followed by two hexadecimal digits.
    /// `netopt1` and `sigv4` refuse such a request.
    var takesStrayPercents: Bool { !testDescription.hasSuffix("netopt1") && !isSigV4 }
    /// Whether the scheme is `sigv4`. It is the only scheme here that refuses an unencoded "+" in the query,
    /// so random requests for it have none.
    var isSigV4: Bool { scheme is SigV4 }
    /// Returns the signed parts of a request in a normal form. If a change to a signed request also changes
    /// this value, the verifier must refuse the changed request.
    let meaning: @Sendable (SigningRequest) -> [[UInt8]]

    init(
      _ name: String, _ keyID: String, _ scheme: any SigningScheme,
      _ meaning: @escaping @Sendable (SigningRequest) -> [[UInt8]]
    ) {
      testDescription = name
      self.keyID = keyID
      self.scheme = scheme
      self.meaning = meaning
    }
  }

  /// All schemes, some of them in several variants.
  private static func kinds() throws -> [Kind] {
    var aws = SigV4.Options()
    aws.region = "eu-west-1"
    aws.service = "execute-api"
    var presigned = aws
    presigned.presignSeconds = 60
    let salted = try SaltedMD5()
    let platform = ring["platform"]
    let netopt1 = { @Sendable (request: SigningRequest) in
      common(
        request, path: segments(request.path), QueryParameters(request.query, plus: true), inAnyOrder: false)
    }
    let raw = { @Sendable (request: SigningRequest) in
      common(request, path: [Array(request.path.utf8)], nil) + [Array((request.query ?? "").utf8)]
    }
    let sigV4 = { @Sendable (request: SigningRequest) in
      common(
        request, path: [Array(PathNormalisation.normalised(request.path).utf8)],
        QueryParameters(request.query, plus: true))
    }
    // salted-md5 signs only the path and the query. The fields carry the key id and the signature.
    let weak = { @Sendable (request: SigningRequest) -> [[UInt8]] in
      [salted.parts(of: request, [])]
        + ["X-Netopt-Key", "X-Netopt-Sig", "X-Netopt-Sealed"].map { Array((request.headers[$0] ?? "").utf8) }
    }
    return [
      Kind("netopt1", "app1.v2", NetOpt1(), netopt1), Kind("rfc9421, hmac-sha256", "app1.v2", RFC9421(), raw),
      Kind("rfc9421, ed25519", "test-key-ed25519", RFC9421(), raw),
      Kind("sigv4", "app1.v2", SigV4(aws), sigV4),
      Kind("sigv4, presigned", "app1.v2", SigV4(presigned), sigV4),
      Kind(
        "sealed-key around netopt1", "caller", SealedKey(.netopt1(NetOpt1()), platform: platform), netopt1),
      Kind("salted-md5", "old", salted, weak),
      Kind("sealed-key around salted-md5", "caller", SealedKey(.saltedMD5(salted), platform: platform)) {
        request in
        // The encryption of the caller's key also authenticates method and host. Nothing authenticates the
        // caller's id, so the id is not a part of the meaning. `knownCaller` tests what the verifier does
        // with another id.
        [
          salted.parts(of: request, []), Array(request.method.utf8),
          Array(request.authority.lowercased().utf8),
        ]
          + ["X-Netopt-Sig", "X-Netopt-Sealed"].map { Array((request.headers[$0] ?? "").utf8) }
      },
    ]
  }

  /// The keys of all kinds. `test-key-ed25519` is a key of RFC 9421 (appendix B.1) and comes from the
  /// vectors.
  private static let ring: KeyRing = {
    let more = (try? VectorTests.Vectors())?.rings["main"]?["test-key-ed25519"]
    return KeyRing(
      [
        SigningKey(
          id: "app1.v2", secret: Array("netopt-test-secret".utf8), salt: "salt-2024",
          schemes: [.netopt1, .rfc9421, .sigv4]),
        SigningKey(id: "app1.v1", secret: Array("other".utf8), salt: "salt-2023"),
        SigningKey(
          id: "old", secret: Array("s3cret".utf8), salt: "pepper", schemes: [.saltedMD5], legacy: true),
        SigningKey(
          id: "platform", secret: Array("0123456789abcdef0123456789abcdef".utf8), salt: "p",
          schemes: [.sealedKey],
          legacy: true),
        SigningKey(id: "caller", secret: Array("callers-own-key".utf8), schemes: [.sealedKey]),
        SigningKey(id: "other-caller", secret: Array("anothers-own-key".utf8), schemes: [.sealedKey]),
      ] + [more].compactMap(\.self))
  }()

  // MARK: Meaning of requests

  /// The meaning that most schemes have in common: method, host in lower case, path, parameters sorted by
  /// key, fields and body.
  ///
  /// - Parameters:
  ///   - parameters: the parameters of the query; `nil` leaves them out.
  ///   - inAnyOrder: whether the meaning stays the same when a query has the values of one key in another
  ///     order.
  private static func common(
    _ request: SigningRequest, path: [[UInt8]], _ parameters: QueryParameters?, inAnyOrder: Bool = true
  ) -> [[UInt8]] {
    let all = parameters?.pairs ?? []
    let sorted = all.enumerated().sorted { a, b in
      if a.element.key != b.element.key { return less(a.element.key, b.element.key) }
      return inAnyOrder ? less(a.element.value, b.element.value) : a.offset < b.offset
    }
    let pairs = sorted.map { $0.element.key + [0] + $0.element.value }
    return [Array(request.method.utf8), Array(request.authority.lowercased().utf8)] + [[]] + path + [[]]
      + pairs
      + [[]] + request.headers.map { Array("\($0.name.lowercased()): \($0.value)".utf8) } + [request.body]
  }

  /// The decoded segments of a path. A slash that was written as `%2F` does not end its segment.
  private static func segments(_ path: String) -> [[UInt8]] {
    path.utf8.split(separator: 0x2f, omittingEmptySubsequences: false).map { PercentEncoding.decoded($0) }
  }

  // MARK: Random requests

  /// The pieces of random paths and queries. In the last two, no hexadecimal digits follow the "%".
  private static let pieces = [
    "a", "Z", "0", "-", "_", ".", "~", "%20", "%2F", "%C3%A9", "é", "日", "+", "*", "(", "!", ":", "@", ",",
    "%zz", "%",
  ]

  /// Joins fewer than `count` random pieces.
  private func text(_ random: inout SplitMix64, upTo count: UInt64) -> String {
    (0..<random.below(count)).map { _ in Self.pieces[Int(random.below(UInt64(Self.pieces.count)))] }.joined()
  }

  /// Makes a random request that the scheme of `kind` signs.
  private func request(_ random: inout SplitMix64, _ kind: Kind) -> SigningRequest {
    while true {
      let request = request(&random)
      let isEncoded = [request.path, request.query ?? ""].allSatisfy { PercentEncoding.fault(in: $0) == nil }
      if kind.isSigV4, request.query?.utf8.contains(0x2b) == true { continue }
      if isEncoded || kind.takesStrayPercents { return request }
    }
  }

  /// Makes a random request. Some schemes may refuse it because of its encoding.
  private func request(_ random: inout SplitMix64) -> SigningRequest {
    let path = (0...random.below(3)).map { _ in "/" + text(&random, upTo: 6) }.joined()
    let query = (0..<random.below(5)).map { _ in
      text(&random, upTo: 4) + (random.below(4) > 0 ? "=" + text(&random, upTo: 5) : "")
    }.joined(separator: "&")
    var headers: HeaderFields = [:]
    if random.below(2) == 0 { headers.append(HeaderField("Content-Type", "text/plain")) }
    if random.below(2) == 0 { headers.append(HeaderField("Idempotency-Key", "k-\(random.below(100))")) }
    return SigningRequest(
      method: ["GET", "POST", "PUT"][Int(random.below(3))], scheme: .https, authority: "api.example.com:8443",
      path: path, query: query.isEmpty ? nil : query, headers: headers,
      body: (0..<random.below(40)).map { _ in UInt8(truncatingIfNeeded: random.next()) })
  }

  /// Signs a request, and returns the request with its signature.
  private func signed(_ request: SigningRequest, _ kind: Kind) throws -> SigningRequest {
    let key = try #require(Self.ring[kind.keyID])
    let result = try kind.scheme.sign(request, with: key, at: SigningMoment(now: Self.now))
    var request = request
    for field in result.headers { request.headers[field.name] = field.value }
    if let query = result.query { request.query = query }
    return request
  }

  /// Verifies a request, and returns the reason in the report: `ok` if the signature is valid.
  private func verdict(_ request: SigningRequest, _ kind: Kind) -> VerificationReport.Reason {
    var policy = SignatureVerifier.Policy()
    policy.allowWeak = true
    return SignatureVerifier(keys: Self.ring, nonces: nil, policy: policy).verify(
      request, scheme: kind.scheme, .init(now: Self.now)
    ).reason
  }

  // MARK: The properties

  @Test("a request whose body is given as its digest has a valid signature", arguments: try kinds())
  private func digests(_ kind: Kind) throws {
    for seed in 1...40 as ClosedRange<UInt64> {
      var random = SplitMix64(seed: seed)
      let whole = request(&random, kind)
      var digested = whole
      digested.body = []
      digested.digestOfBody = try Digest.of(whole.body, .sha256)
      var signed = try signed(digested, kind)
      (signed.body, signed.digestOfBody) = (whole.body, nil)
      #expect(verdict(signed, kind) == .ok)
    }
  }

  @Test("a signed request whose meaning changed with one byte is not valid", arguments: try kinds())
  private func changedBytes(_ kind: Kind) throws {
    var changes = 0
    for seed in 1...8 as ClosedRange<UInt64> {
      var random = SplitMix64(seed: seed)
      let request = try signed(request(&random, kind), kind)
      #expect(verdict(request, kind) == .ok)
      let meaning = kind.meaning(request)
      for change in byteChanges(request) {
        guard let changed = change(&random), kind.meaning(changed) != meaning else { continue }
        changes += 1
        #expect(verdict(changed, kind) != .ok, "seed \(seed): \(changed) for \(request)")
      }
    }
    #expect(changes > 500)
  }

  @Test("random signed requests are valid", arguments: try kinds())
  private func randomRequests(_ kind: Kind) throws {
    var random = SplitMix64(seed: 7)
    for _ in 0..<100 { #expect(verdict(try signed(request(&random, kind), kind), kind) == .ok) }
  }

  /// `sealed-key` around `salted-md5` does not sign the caller's id. If the verifier's key ring has a key
  /// with this id, the sealed key must be that key. An id that the ring does not know is accepted.
  @Test("a sealed request fails with the id of another known caller, and without an id")
  func knownCaller() throws {
    let salted = try SaltedMD5()
    let kind = Kind("", "caller", SealedKey(.saltedMD5(salted), platform: Self.ring["platform"])) { _ in [] }
    var random = SplitMix64(seed: 3)
    let request = try signed(request(&random), kind)
    var other = request
    other.headers["X-Netopt-Key"] = "stranger"
    #expect(verdict(other, kind) == .ok)
    other.headers["X-Netopt-Key"] = "other-caller"
    #expect(verdict(other, kind) == .signatureMismatch)
    other.headers["X-Netopt-Key"] = nil
    #expect(verdict(other, kind) == .malformedSignature)
  }

  /// Closures that each change one byte of a request. There is one for each byte of the method, authority,
  /// path, query, fields and body. The fields include key id, time, nonce and signature. A closure returns
  /// `nil` if the changed text is not valid UTF-8.
  private func byteChanges(_ request: SigningRequest) -> [(inout SplitMix64) -> SigningRequest?] {
    var byteChanges: [(inout SplitMix64) -> SigningRequest?] = []
    func add(_ path: WritableKeyPath<SigningRequest, String>) {
      for offset in 0..<request[keyPath: path].utf8.count {
        byteChanges.append { random in
          var bytes = Array(request[keyPath: path].utf8)
          bytes[offset] = Self.other(bytes[offset], &random)
          guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
          var changed = request
          changed[keyPath: path] = text
          return changed
        }
      }
    }
    add(\.method)
    add(\.authority)
    add(\.path)
    add(\.queryText)
    for index in request.headers.indices {
      add(\.headers[index].name)
      add(\.headers[index].value)
    }
    for index in request.body.indices {
      byteChanges.append { random in
        var changed = request
        changed.body[index] ^= UInt8(1 + random.below(255))
        return changed
      }
    }
    return byteChanges
  }

  /// A random visible ASCII character other than `byte`.
  private static func other(_ byte: UInt8, _ random: inout SplitMix64) -> UInt8 {
    while true {
      let next = UInt8(0x21 + random.below(0x5e))
      if next != byte { return next }
    }
  }
}

extension SigningRequest {
  /// The query; empty if there is none. Setting it does nothing if the request has no query.
  fileprivate var queryText: String {
    get { query ?? "" }
    set { if query != nil { query = newValue } }
  }
}
