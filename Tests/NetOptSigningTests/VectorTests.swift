import NetOptCore
import NetOptCrypto
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptSigning

/// Runs the cases of Tests/Vectors/signing.json. Their expected results come from other implementations and
/// from the examples of AWS and of RFC 9421 (Tests/Vectors/generate.py).
@Suite struct VectorTests {
  /// The content of signing.json.
  struct Vectors: Sendable {
    /// The key rings by name. A case names its ring.
    let rings: [String: KeyRing]
    /// The cases. Each signs or verifies one message.
    let cases: [JSONPart]

    init() throws {
      let bytes = try RepositoryFile.bytes("Tests/Vectors/signing.json")
      let root = try JSONDocument.read(SecretBytes(copying: bytes))
      var rings: [String: KeyRing] = [:]
      for ring in try root.required("rings").members() {
        rings[ring.name] = KeyRing(try KeyFile.keys(ring.value))
      }
      self.rings = rings
      cases = Array(try root.required("cases").elements())
    }
  }

  @Test("each case of signing.json gives the expected result")
  func cases() throws {
    let vectors = try Vectors()
    #expect(vectors.cases.count >= 150)
    for part in vectors.cases {
      let name = try part.required("name").string()
      let ring = try #require(vectors.rings[try part.required("ring").string()])
      let isWeak = try part.member("allow_weak")?.bool() ?? false
      let line = part.member(named: "line")
      let expected = try part.required("expect")
      if try part.required("action").string() == "sign" {
        try checkSigning(name, line, ring, isWeak, expected)
      } else {
        try checkVerifying(name, line, ring, isWeak, try part.member("explain")?.bool() ?? false, expected)
      }
    }
  }

  /// Signs the message of a case, and compares the result with the expected one. Then verifies the signed
  /// message.
  ///
  /// - Parameters:
  ///   - name: the name of the case, for failure messages.
  ///   - part: the message with its options, in the form of a line of `netopt sign --jsonl`.
  ///   - isWeak: whether weak schemes are allowed.
  ///   - expected: the expected result.
  private func checkSigning(
    _ name: String, _ part: JSONPart, _ ring: KeyRing, _ isWeak: Bool, _ expected: JSONPart
  ) throws {
    let line = try SigningLine(part)
    let kind = try #require(line.scheme)
    let scheme = try SchemeOptions.scheme(kind, line.options, isLenient: false, keys: ring)
    let signer = try RequestSigner(
      keys: ring, keyID: try line.keyID ?? #require(ring.keys.first).id, scheme: scheme, allowWeak: isWeak)
    let now = try #require(line.now)
    let signed = try signer.sign(line.request, at: SigningMoment(now: now, nonce: line.nonce))
    #expect(try signed.signature == expected.required("signature").string(), "\(name)")
    if let string = try expected.member("string_to_sign")?.string() {
      #expect(signed.stringToSign == string, "\(name)")
    }
    if let canonical = try expected.member("canonical_request")?.string() {
      #expect(signed.canonicalRequest == canonical, "\(name)")
    }
    if let headers = try expected.member("headers") {
      let fields = try headers.elements().map {
        HeaderField(try $0.elements()[0].string(), try $0.elements()[1].string())
      }
      #expect(signed.headers == fields, "\(name)")
    }
    // The verifier accepts the signed request.
    var request = line.request
    for field in signed.headers { request.headers[field.name] = field.value }
    if let query = signed.query { request.query = query }
    var policy = SignatureVerifier.Policy()
    policy.allowWeak = isWeak
    let verifier = SignatureVerifier(keys: ring, nonces: MemoryNonceStore(), policy: policy)
    let checking = try SchemeOptions.scheme(kind, line.options, isLenient: true, keys: ring)
    let first = verifier.verify(request, scheme: checking, .init(now: now))
    #expect(first.isValid, "\(name): \(first.reason): \(first.detail)")
    if kind == .netopt1 {
      #expect(verifier.verify(request, scheme: checking, .init(now: now)).reason == .replayed, "\(name)")
    }
  }

  /// Verifies the message of a case, and compares the report with the expected one.
  ///
  /// - Parameters:
  ///   - name: the name of the case, for failure messages.
  ///   - part: the message with its options, in the form of a line of `netopt verify --jsonl`.
  ///   - isWeak: whether weak schemes are allowed.
  ///   - explains: whether the verifier searches for the signer's mistake, and the case states which mistake
  ///     the verifier must find (`near_miss`). A case without `near_miss` expects no mistake.
  ///   - expected: the expected report.
  private func checkVerifying(
    _ name: String, _ part: JSONPart, _ ring: KeyRing, _ isWeak: Bool, _ explains: Bool, _ expected: JSONPart
  ) throws {
    var policy = SignatureVerifier.Policy()
    policy.allowWeak = isWeak
    policy.diagnose = explains
    policy.explain = explains
    let report: VerificationReport
    do {
      let line = try SigningLine(part)
      let kind = line.scheme ?? .netopt1
      let scheme = try SchemeOptions.scheme(kind, line.options, isLenient: true, keys: ring)
      let verifier = SignatureVerifier(keys: ring, nonces: MemoryNonceStore(), policy: policy)
      report = verifier.verify(line.request, scheme: scheme, .init(keyID: line.keyID, now: line.now))
    } catch let fault as SigningLine.Fault {
      report = VerificationReport(.netopt1, unread: fault.fault)
    }
    #expect(
      try report.isValid == expected.required("valid").bool(), "\(name): \(report.reason): \(report.detail)")
    #expect(try report.reason.rawValue == expected.required("reason").string(), "\(name): \(report.detail)")
    if let assurance = try expected.member("assurance")?.string() {
      #expect(report.assurance.rawValue == assurance, "\(name)")
    }
    if explains { #expect(try report.nearMiss?.code == expected.member("near_miss")?.string(), "\(name)") }
  }
}

extension JSONPart {
  /// A member that every case has. If a case lacks the member, the vectors are faulty, and the test process
  /// ends.
  fileprivate func member(named name: String) -> JSONPart {
    guard let member = try? required(name) else { preconditionFailure("the vectors have no \(name)") }
    return member
  }
}
