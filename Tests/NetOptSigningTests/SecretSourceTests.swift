import NetOptCore
import NetOptCrypto
import Testing

@testable import NetOptSigning

/// A secret that somebody wrote where the name of its environment variable belongs.
@Suite struct SecretSourceTests {
  @Test(
    "the name of a variable is shown when it looks like one, and a secret in its place is not",
    arguments: [
      ("hunter2hunter2", false), ("S3CRETS3CRET", false), ("dGhpcyBpcw", false), ("a_b", false),
      ("NETOPT_TEST_NOT_SET", true), ("NETOPT_9", true),
    ])
  func names(name: String, isShown: Bool) throws {
    let text = #"{"schema":1,"keys":[{"id":"a","secret_env":"\#(name)","schemes":["netopt1"]}]}"#
    let ring = try KeyRing(json: SecretBytes(copying: Array(text.utf8)))
    let key = try #require(ring["a"])
    #expect(key.kind.contains(name) == isShown)
    let signer = try RequestSigner(keys: ring, keyID: "a")
    let error = #expect(throws: NetOptError.self) {
      try signer.sign(SigningRequest("GET", "https://a.test/"))
    }
    #expect(error?.message.contains(name) == isShown, "\(error?.message ?? "")")
    #expect(error?.message.contains("variable") == true)
  }
}
