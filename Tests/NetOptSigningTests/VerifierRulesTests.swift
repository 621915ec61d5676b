import NetOptCore
import NetOptLocking
import Testing

@testable import NetOptSigning

/// Rules of the verifier that the vectors of other implementations do not cover: bounds, and attacks.
@Suite struct VerifierRulesTests {
  /// The time of signing and of verification, in seconds since 1970.
  private static let now: Int64 = 1_700_000_000
  /// The only key of the verifier, for three schemes.
  private static let key = SigningKey(
    id: "k", secret: Array("some secret".utf8), salt: "s", schemes: [.netopt1, .rfc9421, .sigv4])

  /// Signs a request, and returns the request with its signature.
  private func signed(
    _ request: SigningRequest, _ scheme: any SigningScheme, _ key: SigningKey = key
  ) throws -> SigningRequest {
    let result = try scheme.sign(request, with: key, at: SigningMoment(now: Self.now))
    var request = request
    for field in result.headers { request.headers[field.name] = field.value }
    if let query = result.query { request.query = query }
    return request
  }

  /// Verifies a request.
  ///
  /// - Parameter nonces: the store of used nonces; with `nil` the verifier does not detect replays.
  private func report(
    _ request: SigningRequest, _ scheme: any SigningScheme, nonces: (any NonceStore)? = nil
  ) -> VerificationReport {
    SignatureVerifier(keys: KeyRing([Self.key]), nonces: nonces).verify(
      request, scheme: scheme, .init(now: Self.now))
  }

  @Test("a key id matches by its bytes")
  func bytesOfKeyIDs() {
    let ring = KeyRing([SigningKey(id: "AKID", secret: [1], schemes: [.sigv4])])
    #expect(ring["AKID"] != nil)
    // The Kelvin sign is canonically equivalent to K.
    #expect(ring["A\u{212A}ID"] == nil)
  }

  // MARK: One host

  /// The scope of a key may limit the hosts for which the key signs. The verifier compares the scope with the
  /// authority of a request, but sigv4 signs the `Host` field. So the two must name the same host.
  @Test("a request whose authority differs from its Host field is malformed")
  func twoHosts() throws {
    var aws = SigV4.Options()
    (aws.region, aws.service) = ("r", "s")
    var request = try SigningRequest("GET", "https://a.example/", headers: ["Host": "b.example"])
    #expect(request.authority == "b.example")
    request = try signed(request, SigV4(aws))
    #expect(report(request, SigV4(aws)).isValid)
    request.authority = "a.example"
    #expect(report(request, SigV4(aws)).reason == .malformedRequest)
    request.authority = "B.Example"
    #expect(report(request, SigV4(aws)).isValid)
  }

  @Test("the host of an absolute request target replaces the Host field")
  func absoluteTarget() throws {
    let message = "GET http://a.example/x HTTP/1.1\r\nHost: b.example\r\n\r\n"
    let request = try SigningRequest(message: Array(message.utf8))
    #expect(request.authority == "a.example" && request.headers["Host"] == "a.example")
  }

  // MARK: Nonces

  @Test("nonces are 16 random bytes in base64url and differ")
  func nonces() throws {
    var random = SplitMix64(seed: 5)
    for bytes in [[UInt8](repeating: 0, count: 16), .init(repeating: 0xff, count: 16)]
      + (0..<200).map({ _ in (0..<16).map { _ in UInt8(random.below(256)) } })
    {
      // The nonce is the end of a longer array, as in the pool of `NonceSource`.
      let pool = [7] + bytes
      #expect(pool.withUnsafeBufferPointer { NonceSource.text(of: $0[1...]) } == Base64.text(bytes, .url))
    }
    let nonces = try (0..<600).map { _ in try #require(Base64.decode(NonceSource.next().utf8, .url)) }
    #expect(nonces.allSatisfy { $0.count == 16 } && Set(nonces).count == nonces.count)
    // Each bit is set in some nonces and not in others.
    #expect((0..<128).allSatisfy { bit in Set(nonces.map { $0[bit / 8] >> (bit % 8) & 1 }).count == 2 })
  }

  // MARK: Coverage

  /// Signs each subset of the components that a signer signs by default. `verify(_:scheme:)` refuses each
  /// proper subset, and accepts it with options that name only the signed components.
  @Test("a signature must cover all default components, unless the options name fewer")
  func coverage() throws {
    var request = try SigningRequest("POST", "https://a.example/b?c=d", body: Array("e".utf8))
    request.headers.append(HeaderField("Content-Type", "text/plain"))
    let verifier = SignatureVerifier(keys: KeyRing([Self.key]), nonces: nil)
    let usual = RFC9421.usual(request)
    #expect(usual.count == 6)
    for signed in 0..<1 << usual.count {
      let components = usual.indices.filter { signed >> $0 & 1 == 1 }.map { usual[$0] }
      var options = RFC9421.Options()
      options.components = components
      let sent = try self.signed(request, RFC9421(options))
      let report = try verifier.verify(sent, scheme: .rfc9421, .init(now: Self.now))
      #expect(report.reason == (components.count == usual.count ? .ok : .notCovered), "\(components)")
      let names = JSONValue.array(components.map { .string($0.name) })
      let told = try verifier.verify(
        sent, scheme: .rfc9421, options: JSONValue.object([.init("components", names)]).description,
        .init(now: Self.now))
      #expect(told.reason == .ok, "\(components)")
    }
  }

  /// The label is written into a header field. An unchecked label could add a member to the field, or a line
  /// to the message.
  @Test(
    "a label that is not a key of a structured field is refused",
    arguments: ["a\r\nX: y", "a, b=()", "A", "", "1", "a b", "é"])
  func labels(_ label: String) throws {
    let options = JSONValue.object([.init("label", .string(label))]).description
    let error = #expect(throws: NetOptError.self) {
      try RequestSigner(keys: KeyRing([Self.key]), keyID: "k", scheme: .rfc9421, options: options)
    }
    #expect(error?.code == .invalidConfiguration)
  }

  // MARK: Bounds

  @Test("a signature that covers more than 256 fields or components is malformed")
  func mostComponents() throws {
    var request = try SigningRequest("GET", "https://a.example/")
    let names = (0..<300).map { "x-\($0 + 1000)" }
    for name in names { request.headers.append(HeaderField(name, "1")) }
    var options = RFC9421.Options()
    for count in [256, 257] {
      options.components = names.prefix(count).map { SignatureComponent($0) }
      let rfc9421 = RFC9421(options)
      let reason: VerificationReport.Reason = count == 256 ? .ok : .malformedSignature
      #expect(report(try signed(request, rfc9421), rfc9421).reason == reason)
    }
    // A signer in netopt1 or sigv4 refuses to sign more than 256 fields. So the test signs 256 fields, and
    // then adds one more name to the list in the Authorization field.
    let netopt1 = try NetOpt1(fields: Array(names.prefix(256)))
    var aws = SigV4.Options()
    (aws.region, aws.service) = ("r", "s")
    // sigv4 also signs `host` and `x-amz-date`, so 254 other fields are left.
    request.headers.removeAll { names.dropFirst(254).contains($0.name) }
    let sigV4 = SigV4(aws)
    #expect(report(try signed(request, sigV4), sigV4).reason == .ok)
    for name in names.dropFirst(254) { request.headers.append(HeaderField(name, "1")) }
    var sent = try signed(request, netopt1)
    #expect(report(sent, netopt1).reason == .ok)
    sent.headers["Authorization"] = sent.headers["Authorization"]?.replacing(
      "headers=", with: "headers=x-0999;")
    #expect(report(sent, netopt1).reason == .malformedSignature)
    request.headers.removeAll { names.dropFirst(254).contains($0.name) }
    sent = try signed(request, sigV4)
    sent.headers["Authorization"] = sent.headers["Authorization"]?.replacing(
      "SignedHeaders=", with: "SignedHeaders=a;")
    #expect(report(sent, sigV4).detail.contains("up to 256 names"))
  }

  @Test("a field with 200,000 folded lines is read within a minute", .timeLimit(.minutes(1)))
  func manyFolds() throws {
    let count = 200_000
    let message = "GET / HTTP/1.1\nHost: a\nX: 0\n" + String(repeating: " a\n", count: count) + "\n"
    let request = try SigningRequest(message: Array(message.utf8))
    #expect(request.headers["X"]?.utf8.count == 1 + 2 * count)
  }

  /// A signer may choose a nonce of any length. The verifier stores a nonce of more than 64 bytes as
  /// `sha-256:` and its digest, which have 72 bytes.
  @Test("the nonce store keeps long nonces in at most 72 bytes and still detects replays")
  func longNonces() throws {
    // Keeps each nonce with the moment until which the verifier asked to keep it, in seconds since 1970.
    final class Store: NonceStore {
      let kept = Locked<[String: Int64]>([:])
      func record(
        _ nonce: String, of key: String, created: Int64, until expiry: Int64, now: Int64
      ) throws(NonceStoreError) -> Bool { kept.withLock { $0.updateValue(expiry, forKey: nonce) == nil } }
    }
    let store = Store()
    var options = RFC9421.Options()
    let request = try SigningRequest("GET", "https://a.example/")
    for (nonce, isNew) in [
      ("short", true), (String(repeating: "n", count: 5000), true),
      (String(repeating: "n", count: 5000), false),
      (String(repeating: "n", count: 5001), true),
    ] {
      options.nonce = nonce
      options.expires = Self.now + 999_999
      let report = report(try signed(request, RFC9421(options)), RFC9421(options), nonces: store)
      #expect(report.reason == (isNew ? .ok : .replayed))
    }
    let kept = store.kept.withLock(\.self)
    #expect(kept.count == 3 && kept["short"] != nil && kept.keys.allSatisfy { $0.utf8.count <= 72 })
    // The verifier refuses a signature that is more than 300 s old, even before its `expires`. So the store
    // need not keep the nonce for longer.
    #expect(kept.values.allSatisfy { $0 == Self.now + 300 })
  }

  // MARK: Unsigned parts

  @Test("a signature without the body is weak, even if the request has no body")
  func unsignedBody() throws {
    var aws = SigV4.Options()
    (aws.region, aws.service) = ("r", "s3")
    aws.presignSeconds = 60
    var request = try signed(try SigningRequest("GET", "https://a.example/file"), SigV4(aws))
    #expect(report(request, SigV4(aws)).assurance == .weak)
    request.body = [1]
    #expect(report(request, SigV4(aws)).assurance == .weak)
    aws.presignSeconds = nil
    #expect(
      report(try signed(try SigningRequest("GET", "https://a.example/file"), SigV4(aws)), SigV4(aws))
        .assurance == .strong)
  }

  @Test("a request with two key ids has a malformed signature")
  func twoKeyIDs() throws {
    var options = SaltedMD5.Options()
    options.parameters = ("k", "s")
    let old = SigningKey(id: "old", secret: Array("x".utf8), schemes: [.saltedMD5], legacy: true)
    var request = try signed(try SigningRequest("GET", "https://a.example/x?q=1"), SaltedMD5(options), old)
    var policy = SignatureVerifier.Policy()
    policy.allowWeak = true
    let verifier = SignatureVerifier(keys: KeyRing([old]), nonces: nil, policy: policy)
    #expect(verifier.verify(request, scheme: try SaltedMD5(options), .init(now: Self.now)).isValid)
    request.query? += "&k=other"
    #expect(
      verifier.verify(request, scheme: try SaltedMD5(options), .init(now: Self.now)).reason
        == .malformedSignature)
  }

  /// The time that a refusal takes must not tell whether the verifier knows the key. So the verifier makes
  /// all checks and computes one MAC for an unknown key, as it does for a wrong signature.
  @Test("the verifier makes all checks for an unknown key too")
  func unknownKey() throws {
    var aws = SigV4.Options()
    (aws.region, aws.service) = ("r", "s")
    let schemes: [any SigningScheme] = [NetOpt1(), RFC9421(), SigV4(aws)]
    for scheme in schemes {
      let request = try signed(try SigningRequest("GET", "https://a.example/"), scheme)
      let stranger = SignatureVerifier(keys: KeyRing([]), nonces: nil)
      let report = stranger.verify(request, scheme: scheme, .init(now: Self.now))
      #expect(report.reason == .unknownKey)
      #expect(report.checks.map(\.name) == ["parse", "key", "time", "coverage", "body", "signature"])
      #expect(report.checks.map(\.ok) == [true, false, true, true, true, false])
    }
  }
}
