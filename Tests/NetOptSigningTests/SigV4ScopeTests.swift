import NetOptCore
import Testing

@testable import NetOptSigning

@Suite("sigv4 names the region or the service that it cannot sign for") struct SigV4ScopeTests {
  private static let key = SigningKey(id: "k", secret: Array("some secret".utf8), schemes: [.sigv4])

  /// Signs a request for a region and a service. Returns the error; `nil` if the request was signed.
  private func fault(region: String?, service: String?) throws -> SigningFault? {
    var options = SigV4.Options()
    (options.region, options.service) = (region, service)
    let request = try SigningRequest("GET", rawURL: "https://api.example.com/", headers: [:], body: [])
    do throws(SigningFault) {
      _ = try SigV4(options).sign(request, with: Self.key, at: SigningMoment(now: 1_700_000_000))
      return nil
    } catch {
      return error
    }
  }

  /// `words` are texts that the error must contain.
  @Test(
    "an error names the missing or invalid region or service",
    arguments: [
      (nil, "s3", ["a region", "none is given", "us-east-1"]), ("", "s3", ["a region", "none is given"]),
      ("us-east-1", nil, ["a service", "none is given", "execute-api"]),
      ("us east", "s3", ["the region \"us east\"", "a space"]),
      ("us/east", "s3", ["the region \"us/east\"", "the character /"]),
      ("us\u{e9}", "s3", ["the region", "the byte 0xc3"]),
      ("us\n", "s3", ["the region \"us\\n\"", "a line feed (LF)"]),
      ("us-east-1", "execute api", ["the service \"execute api\"", "a space"]),
    ] as [(String?, String?, [String])])
  func isNamed(region: String?, service: String?, words: [String]) throws {
    let fault = try #require(try fault(region: region, service: service))
    for part in words { #expect(fault.detail.contains(part), "\(fault.detail)") }
    // The error concerns either the region or the service, so it must not name both.
    #expect(!fault.detail.contains("a region and a service"))
  }

  @Test("a valid region and service are signed")
  func signs() throws { #expect(try fault(region: "us-east-1", service: "execute-api") == nil) }
}
