import NetOptCore
import Testing

@testable import NetOptSigning

/// The examples of RFC 9421, appendix B: a response (B.2.4), a request that a proxy signs (B.3), and changes
/// that proxies make to a signed request (B.4). The requests of B.2 are in Tests/Vectors/signing.json.
@Suite struct RFC9421AppendixTests {
  /// The time of signing in all examples (`created`), in seconds since 1970. The tests verify at this time.
  private static let created: Int64 = 1_618_884_473
  /// The key ring `main` of the vectors. It has the keys of the RFC (B.1). `nil` if the vectors cannot be
  /// read.
  private static let ring = (try? VectorTests.Vectors())?.rings["main"]

  /// Verifies a message at the time `created`. The signature must cover the given components; with `nil` it
  /// may cover any.
  private func verdict(
    _ message: SigningRequest, _ components: [String]? = nil
  ) throws -> VerificationReport {
    var options = RFC9421.Options()
    options.components = try components.map { try $0.map { try SignatureComponent(text: $0) } }
    return SignatureVerifier(keys: try #require(Self.ring), nonces: nil).verify(
      message, scheme: RFC9421(options, isLenient: true), .init(now: Self.created))
  }

  // MARK: B.2.4

  /// The response of B.2.4 with its signature.
  private static let response = SigningRequest(
    status: 200,
    headers: [
      "Date": "Tue, 20 Apr 2021 02:07:56 GMT", "Content-Type": "application/json",
      "Content-Digest":
        "sha-512=:mEWXIS7MaLRuGgxOBdODa3xqM1XdEvxoYhvlCFJ41QJgJc4GTsPp29l5oGX69wWdXymyU0rjJuahq4l5aGgfLQ==:",
      "Content-Length": "23",
      "Signature-Input":
        #"sig-b24=("@status" "content-type" "content-digest" "content-length");created=1618884473;keyid="test-key-ecc-p256""#,
      "Signature":
        "sig-b24=:wNmSUAhwb5LxtOtOpNa6W5xj067m5hFrj0XQ4fvpaCLx0NKocgPquLgyahnzDnDAUy5eCdlYUEkLIj+32oiasw==:",
    ], body: Array(#"{"message": "good dog"}"#.utf8))

  @Test("the response of B.2.4 is valid, and a changed response is not")
  func verifiedResponse() throws {
    let report = try verdict(Self.response)
    #expect(report.isValid && report.assurance == .strong, "\(report.detail)")
    let other = SigningRequest(status: 201, headers: Self.response.headers, body: Self.response.body)
    #expect(try verdict(other).reason == .signatureMismatch)
    var changed = Self.response
    changed.body.append(0x0a)
    #expect(try verdict(changed).reason == .bodyMismatch)
    changed = Self.response
    changed.headers["Content-Type"] = "text/html"
    #expect(try verdict(changed).reason == .signatureMismatch)
  }

  @Test("a response that netopt signs is valid")
  func signedResponse() throws {
    let key = try #require(Self.ring?["test-key-ecc-p256"])
    var response = SigningRequest(
      status: 503, headers: ["Content-Type": "text/plain"], body: Array("later".utf8))
    let signed = try RFC9421().sign(response, with: key, at: SigningMoment(now: Self.created))
    #expect(signed.stringToSign.hasPrefix("\"@status\": 503\n\"content-digest\": sha-256=:"))
    for field in signed.headers { response.headers[field.name] = field.value }
    #expect(try verdict(response).isValid)
  }

  @Test("a response cannot sign components of requests, nor a request @status")
  func wrongComponents() throws {
    #expect(throws: SigningFault.self) {
      try RFC9421AppendixTests.sign(Self.response, ["@method"])
    }
    #expect(throws: SigningFault.self) {
      try RFC9421AppendixTests.sign(GoldenVectorTests.request, ["@status"])
    }
    #expect(throws: SigningFault.self) { try SignatureComponent(text: "\"@method\";req") }
    for status in [0, 99, 1000, -1] {
      #expect(throws: SigningFault.self) { try SigningRequest(status: status, headers: [:]).check() }
    }
    // The other schemes sign requests only.
    let ring = KeyRing([GoldenVectorTests.key])
    #expect(throws: NetOptError.self) { try RequestSigner(keys: ring, keyID: "app1.v2").sign(Self.response) }
    let report = SignatureVerifier(keys: ring, nonces: nil).verify(Self.response)
    #expect(report.reason == .malformedRequest)
  }

  /// Signs a message with the given components. The tests only need to know whether this throws.
  private static func sign(_ message: SigningRequest, _ components: [String]) throws(SigningFault) {
    var options = RFC9421.Options()
    options.components = components.map { SignatureComponent($0) }
    let key = SigningKey(id: "a", secret: [1, 2, 3], schemes: [.rfc9421])
    _ = try RFC9421(options).sign(message, with: key, at: SigningMoment(now: created))
  }

  // MARK: B.3

  @Test("the request that a proxy signed in B.3 is valid, with weak assurance")
  func proxyRequest() throws {
    let certificate =
      ":MIIBqDCCAU6gAwIBAgIBBzAKBggqhkjOPQQDAjA6MRswGQYDVQQKDBJMZXQncyBBdXRoZW50aWNhdGUxGzAZBgNVBAMMEkxBIEludGVybWVk"
      + "aWF0ZSBDQTAeFw0yMDAxMTQyMjU1MzNaFw0yMTAxMjMyMjU1MzNaMA0xCzAJBgNVBAMMAkJDMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE8Y"
      + "nXXfaUgmnMtOXU/IncWalRhebrXmckC8vdgJ1p5Be5F/3YC8OthxM4+k1M6aEAEFcGzkJiNy6J84y7uzo9M6NyMHAwCQYDVR0TBAIwADAfBgNV"
      + "HSMEGDAWgBRm3WjLa38lbEYCuiCPct0ZaSED2DAOBgNVHQ8BAf8EBAMCBsAwEwYDVR0lBAwwCgYIKwYBBQUHAwIwHQYDVR0RAQH/BBMwEYEPYm"
      + "RjQGV4YW1wbGUuY29tMAoGCCqGSM49BAMCA0gAMEUCIBHda/r1vaL6G3VliL4/Di6YK0Q6bMjeSkC3dFCOOB8TAiEAx/kHSB4urmiZ0NX5r5Xa"
      + "rmPk0wmuydBVoU4hBVZ1yhk=:"
    var request = try SigningRequest(
      "POST", "https://service.internal.example/foo?param=Value&Pet=dog",
      headers: [
        "Date": "Tue, 20 Apr 2021 02:07:55 GMT", "Content-Type": "application/json", "Content-Length": "18",
        "Client-Cert": certificate,
        "Signature-Input":
          #"ttrp=("@path" "@query" "@method" "@authority" "client-cert");created=1618884473;keyid="test-key-ecc-p256""#,
        "Signature":
          "ttrp=:xVMHVpawaAC/0SbHrKRs9i8I3eOs5RtTMGCWXm/9nvZzoHsIg6Mce9315T6xoklyy0yzhD9ah4JHRwMLOgmizw==:",
      ], body: Array(#"{"hello": "world"}"#.utf8))
    let wanted = ["@path", "@query", "@method", "@authority", "client-cert"]
    #expect(try verdict(request, wanted).isValid)
    // The body is not signed: the proxy states who the client is, not which body the client sent.
    #expect(try verdict(request, wanted).assurance == .weak)
    request.headers["Client-Cert"] = certificate.replacing("MIIB", with: "MIIC")
    #expect(try verdict(request, wanted).reason == .signatureMismatch)
    request.headers["Client-Cert"] = nil
    #expect(try verdict(request, wanted).reason == .missingField)
  }

  // MARK: B.4

  /// The two fields that carry the signature of B.4. The signature covers method, path, authority and the
  /// `Accept` fields.
  private static let signature: HeaderFields = [
    "Signature-Input":
      #"transform=("@method" "@path" "@authority" "accept");created=1618884473;keyid="test-key-ed25519""#,
    "Signature":
      "transform=:ZT1kooQsEHpZ0I1IjCqtQppOmIqlJPeo7DHR3SoMn0s5JZ1eRGS0A+vyYP9t/LXlh5QMFFQ6cpLt2m0pmj3NDA==:",
  ]
  /// The URL of the request of B.4.
  private static let target = "https://example.org/demo?name1=Value1&Name2=value2"
  /// A field that is not signed.
  private static let date = HeaderField("Date", "Fri, 15 Jul 2022 14:24:55 GMT")
  /// The first of the two signed `Accept` fields.
  private static let json = HeaderField("Accept", "application/json")
  /// The second of the two signed `Accept` fields.
  private static let any = HeaderField("Accept", "*/*")

  /// Variants of the signed request: what has changed on the way, the request that arrives, and the reason
  /// that the verifier must give. `ok` means that the signature is still valid.
  private static let transformations:
    [(what: String, method: String, url: String, fields: [HeaderField], reason: VerificationReport.Reason)] =
      [
        ("the original", "GET", target, [date, json, any], .ok),
        (
          "a parameter and a field more", "GET", target + "&param=added",
          [date, json, any, HeaderField("Accept-Language", "en-US,en;q=0.5")], .ok
        ),
        (
          "a field less, another one, two joined", "GET", target,
          [
            HeaderField("Referer", "https://developer.example.org/demo"),
            HeaderField("Accept", "application/json, */*"),
          ], .ok
        ),
        ("fields in another order", "GET", target, [json, date, any], .ok),
        (
          "another method and another host", "POST", target.replacing("example.org", with: "example.com"),
          [date, json, any], .signatureMismatch
        ),
        ("values in another order", "GET", target, [date, any, json], .signatureMismatch),
      ]

  @Test("each transformation of B.4 is valid or refused as the RFC says", arguments: transformations.indices)
  func transformation(_ index: Int) throws {
    let (what, method, url, fields, reason) = Self.transformations[index]
    let request = try SigningRequest(method, url, headers: HeaderFields(fields) + Self.signature)
    let report = try verdict(request, ["@method", "@path", "@authority", "accept"])
    #expect(report.reason == reason, "\(what): \(report.detail)")
  }

  @Test("netopt signs the request of B.4 with the signature of the RFC")
  func transformedRequest() throws {
    let key = try #require(Self.ring?["test-key-ed25519"])
    var options = RFC9421.Options()
    options.label = "transform"
    options.components = ["@method", "@path", "@authority", "accept"].map { SignatureComponent($0) }
    options.makesNonce = false
    let request = try SigningRequest(
      "GET", Self.target, headers: HeaderFields([Self.date, Self.json, Self.any]))
    let signed = try RFC9421(options).sign(request, with: key, at: SigningMoment(now: Self.created))
    #expect(HeaderFields(signed.headers) == Self.signature)
  }
}
