import NetOptCore
import NetOptTestSupport
import Testing

@testable import NetOptSigning

/// The keys with which `sealed-key` verifies: the platform's, and the caller's if the verifier knows it.
@Suite struct SealedKeyTests {
  private static let platform = SigningKey(
    id: "platform", secret: Array("0123456789abcdef0123456789abcdef".utf8), schemes: [.sealedKey],
    legacy: true)
  private static let secret = Array("callers-own-key".utf8)
  private static let now: Int64 = 1_700_000_000

  /// Returns the caller's key with limits. The default is a key without limits.
  private static func caller(
    _ schemes: Set<SchemeName> = [.sealedKey], secret: [UInt8] = secret, notBefore: Int64? = nil,
    notAfter: Int64? = nil, scopes: [KeyScope] = []
  ) -> SigningKey {
    SigningKey(
      id: "caller", secret: secret, schemes: schemes, legacy: true, notBefore: notBefore,
      notAfter: notAfter, scopes: scopes)
  }

  /// The caller's key of the verifier, and the reason in the report.
  private static let cases: [(SigningKey, VerificationReport.Reason)] = [
    (caller(), .ok),
    (caller(notBefore: now, notAfter: now), .ok),
    (caller(notAfter: now - 1), .keyExpired),
    (caller(notBefore: now + 1), .keyNotYetValid),
    (caller(scopes: [KeyScope(methods: ["DELETE"])]), .ok),
    (caller(scopes: [KeyScope(methods: ["GET"])]), .outOfScope),
    (caller(scopes: [KeyScope(hosts: ["b.test"])]), .outOfScope),
    (caller(scopes: [KeyScope(pathPrefixes: ["/pub"])]), .outOfScope),
    (caller([.netopt1, .saltedMD5]), .schemeNotAllowed),
    (caller(secret: Array("another".utf8)), .signatureMismatch),
  ]

  /// A sealed key belongs to its caller, so the limits of the caller's key in the ring hold for it too.
  @Test(
    "the limits of the caller's key apply also when the key comes with the request",
    arguments: cases.indices, [false, true])
  func limits(_ index: Int, _ isWeak: Bool) throws {
    let (known, expected) = Self.cases[index]
    let inner: SealedKey.Inner = isWeak ? .saltedMD5(try SaltedMD5()) : .netopt1(NetOpt1())
    let scheme = SealedKey(inner, platform: Self.platform)
    let request = try SigningRequest("DELETE", "https://a.test/x?q=1")
    let signed = try scheme.sign(request, with: Self.caller(), at: SigningMoment(now: Self.now))
    var sent = request
    sent.query = signed.query ?? sent.query
    for field in signed.headers { sent.headers[field.name] = field.value }
    var policy = SignatureVerifier.Policy()
    policy.allowWeak = true
    func reason(_ keys: [SigningKey]) -> VerificationReport.Reason {
      SignatureVerifier(keys: KeyRing(keys), nonces: nil, policy: policy)
        .verify(sent, scheme: scheme, .init(now: Self.now)).reason
    }
    #expect(reason([Self.platform, known]) == expected)
    // A caller that the ring does not know may use any key.
    #expect(reason([Self.platform]) == .ok)
  }
}
