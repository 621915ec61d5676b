import NetOptCore
import Testing

@testable import NetOptSigning

/// The golden vectors: from fixed inputs, the schemes must make exactly the signatures that docs/signing.md
/// names. Other tests use the inputs of netopt1 too.
@Suite struct GoldenVectorTests {
  static let key = SigningKey(
    id: "app1.v2", secret: Array("netopt-test-secret".utf8), salt: "salt-2024")
  /// The time of signing in seconds since 1970, and the nonce.
  static let moment = SigningMoment(now: 1_700_000_000, nonce: "AAECAwQFBgcICQoLDA0ODw")
  /// The signature that netopt1 makes of `request` with `key` at `moment`.
  static let signature = "34aa7469d684228686cb97a4d4d5f06d765335c90515211c836443deb7eb68e4"

  static let request = SigningRequest(
    method: "POST", scheme: .https, authority: "API.Example.com:443", path: "/user/search",
    query: "q=a%20b%2Bc&tag=%C3%A9&tag=x&empty=", headers: ["content-type": "application/json"],
    body: Array(#"{"hello": "world"}"#.utf8))

  @Test("netopt1 makes the golden signature")
  func netopt1() throws {
    let signed = try NetOpt1().sign(Self.request, with: Self.key, at: Self.moment)
    #expect(signed.stringToSign.utf8.count == 239)
    // The eighth line has the parameters.
    #expect(
      signed.stringToSign.split(separator: "\n", omittingEmptySubsequences: false)[7]
        == "empty=&q=a%20b%2Bc&tag=%C3%A9&tag=x")
    #expect(signed.signature == Self.signature)
    #expect(
      signed.headers == [
        HeaderField(
          "Authorization",
          "NETOPT1-HMAC-SHA256 keyid=app1.v2,ts=1700000000,nonce=AAECAwQFBgcICQoLDA0ODw,headers=content-type,"
            + "sig=\(Self.signature)")
      ])
  }

  @Test("netopt1 makes the same signature for an equivalent form of the request")
  func equivalentRequest() throws {
    var request = Self.request
    request.authority = "api.example.com"
    request.query = "tag=é&empty&tag=x&q=a+b%2bc"
    let signed = try NetOpt1().sign(request, with: Self.key, at: Self.moment)
    #expect(signed.signature == Self.signature)
  }

  @Test("salted-md5 makes the golden signatures")
  func saltedMD5() throws {
    let key = SigningKey(
      id: "old", secret: Array("s3cret".utf8), salt: "pepper", schemes: [.saltedMD5], legacy: true)
    let request = SigningRequest(
      method: "GET", authority: "api.example.com", path: "/user/search", query: "q=a%20b&page=1&empty=")
    let signed = try SaltedMD5().sign(request, with: key, at: Self.moment)
    #expect(signed.stringToSign == "user/searchpage=1&q=a b")
    #expect(signed.signature == "0faad350a8983f8bd1d1e919fad4d3cf")
    #expect(
      signed.headers == [
        HeaderField("X-Netopt-Key", "old"), HeaderField("X-Netopt-Sig", "0faad350a8983f8bd1d1e919fad4d3cf"),
      ])
    // The first of two rounds gives the inner hash.
    var once = SaltedMD5.Options()
    once.rounds = 1
    #expect(
      try SaltedMD5(once).sign(request, with: key, at: Self.moment).signature
        == "031e668114520f456dbd5c4a793b264a")
  }
}
