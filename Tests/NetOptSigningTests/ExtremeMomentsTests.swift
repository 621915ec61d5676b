import Glibc
import NetOptCore
import NetOptCrypto
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptSigning

/// No time, window or validity period makes the verifier or the signer trap: each request gets a report. The
/// tests run in child processes, because a trap would end the test process. Each child process notes its
/// input before it uses it (`LastNote`).
@Suite struct ExtremeMomentsTests {
  /// Times in seconds since 1970: extreme ones, the usual time of the tests, the last second of the year 9999
  /// and the second after it.
  private static let moments =
    ExtremeNumbers.integers.map(Int64.init) + [1_700_000_000, 253_402_300_799, 253_402_300_800]

  /// A key for all schemes. It is valid from `notBefore` until `notAfter`, in seconds since 1970; `nil` means
  /// without a limit.
  private static func key(_ notBefore: Int64? = nil, _ notAfter: Int64? = nil) -> SigningKey {
    SigningKey(
      id: "k", secret: Array("some secret".utf8), salt: "s", schemes: Set(SchemeName.allCases), legacy: true,
      notBefore: notBefore, notAfter: notAfter)
  }

  /// The schemes that sign a time: netopt1, RFC 9421 without and with an expiry time, and SigV4 in a header
  /// and as a presigned URL. `expires` is the expiry time for RFC 9421, in seconds since 1970. The presigned
  /// URL is valid for 600 s.
  private static func schemes(expires: Int64) -> [any SigningScheme] {
    var header = SigV4.Options()
    (header.region, header.service) = ("r", "s")
    var presigned = header
    presigned.presignSeconds = 600
    var message = RFC9421.Options()
    message.expires = expires
    return [NetOpt1(), RFC9421(), RFC9421(message), SigV4(header), SigV4(presigned)]
  }

  /// Makes a request with a signature of the scheme. `now` is the time of signing, in seconds since 1970.
  private static func signed(
    _ scheme: any SigningScheme, _ key: SigningKey, at now: Int64
  ) throws -> SigningRequest {
    var request = try SigningRequest("GET", "https://a.example/x?y=1")
    let result = try scheme.sign(request, with: key, at: SigningMoment(now: now))
    for field in result.headers { request.headers[field.name] = field.value }
    if let query = result.query { request.query = query }
    return request
  }

  @Test("the verifier reports on a request with extreme times of signing, verifying and window")
  func everyMoment() async throws {
    let note = try LastNote()
    await #expect(processExitsWith: .success) { [path = note.path as String] in
      // The alarm ends a process that hangs.
      alarm(300)
      let note = LastNote(path)
      var random = SplitMix64(seed: 1)
      let store = try SQLiteNonceStore(try TemporaryDirectory.make("nonces") + "/nonces.db")
      for created in Self.moments {
        for scheme in Self.schemes(expires: random.element(of: Self.moments)) {
          note.write("\(scheme.name) at \(created)")
          guard let request = try? Self.signed(scheme, Self.key(), at: created) else { continue }
          for now in Self.moments {
            var policy = SignatureVerifier.Policy()
            policy.window = random.isOne(in: 2) ? 300 : random.element(of: Self.moments)
            policy.diagnose = true
            note.write("\(scheme.name) at \(created), verified at \(now) within \(policy.window)")
            let nonces: any NonceStore = random.isOne(in: 8) ? store : MemoryNonceStore(limit: 4)
            let verifier = SignatureVerifier(keys: KeyRing([Self.key()]), nonces: nonces, policy: policy)
            for _ in 0..<2 {
              let report = verifier.verify(request, scheme: scheme, .init(now: now))
              #expect(report.isValid == report.checks.allSatisfy(\.ok))
            }
          }
        }
      }
      note.write("the end")
    }
    #expect(note.text == "the end")
  }

  @Test("a key is accepted from notBefore until notAfter, also at extreme times")
  func everyValidity() async throws {
    let note = try LastNote()
    await #expect(processExitsWith: .success) { [path = note.path as String] in
      alarm(300)
      let note = LastNote(path)
      let request = try Self.signed(NetOpt1(), Self.key(), at: 1_700_000_000)
      for notBefore in Self.moments {
        for notAfter in Self.moments where notBefore <= notAfter {
          let key = Self.key(notBefore, notAfter)
          for now in Self.moments {
            note.write("from \(notBefore) until \(notAfter), at \(now)")
            let report = SignatureVerifier(keys: KeyRing([key]), nonces: nil).verify(request, .init(now: now))
            let check = report.checks.first { $0.name == "key" }
            #expect(check?.ok == (notBefore...notAfter).contains(now))
            _ = try? RequestSigner(keys: KeyRing([key]), keyID: "k").sign(
              request, at: SigningMoment(now: now))
          }
        }
      }
      note.write("the end")
    }
    #expect(note.text == "the end")
  }
}
