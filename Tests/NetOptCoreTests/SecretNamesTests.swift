import NetOptTestSupport
import Testing

@testable import NetOptCore

/// The recognition of names that suggest secrets.
@Suite struct SecretNamesTests {
  @Test(
    "names that suggest secrets match",
    arguments: [
      "token", "access_token", "X-Vault-Token", "apiKey", "API-KEY", "DD-API-KEY", "X-Client-Secret",
      "clientSecret",
      "sig", "X-Amz-Signature", "pw", "pwd", "user.pass", "PHPSESSID", "jsessionid", "key", "Fastly-Key",
      "x[key]",
      "code", "CODE", "auth_code", "otp1", "1otp", "_sid_", "userPin", "AWSKey", "KeyID", "SIGValue",
      "cookie",
      "\u{e9}key", "passkey", "licenseKey", "storageKey", "device_code", "user-code", "cred", "jwe", "mfa",
      "hdnts",
    ])
  func namesOfSecrets(_ name: String) { #expect(SecretNames.contains(name)) }

  @Test(
    "names that do not suggest secrets do not match",
    arguments: [
      "", "k", "q", "Accept", "Accept-Language", "Content-Type", "User-Agent", "If-None-Match",
      "Cache-Control",
      "X-Request-Id", "traceparent", "keyword", "monkey", "author", "shipping", "side", "country_code",
      "codes",
      "compass", "spinner", "design", "AUTHOR", "MONKEY", "mySide",
    ])
  func otherNames(_ name: String) { #expect(!SecretNames.contains(name)) }

  /// A name suggests a secret if one of its words does. The test puts such a word among random other words,
  /// and joins all words with a separator or in camel case.
  @Test("a secret word in a name matches in any case, position and notation")
  func wordPositions() {
    var random = SplitMix64(seed: 7)
    let secrets = ["token", "secret", "key", "sig", "pass", "auth", "jwt", "pin", "apikey", "signature"]
    let others = ["x", "my", "id", "page", "user", "v2", "acme", "name", "2"]
    for _ in 0..<5000 {
      var words = (0..<random.below(4)).map { _ in others.randomElement(using: &random) ?? "x" }
      let separator = ["-", "_", ".", "[", " "].randomElement(using: &random) ?? "-"
      // The name without the word that suggests a secret.
      let harmless = words.joined(separator: separator)
      words.insert(
        secrets.randomElement(using: &random) ?? "key", at: Int(random.below(UInt64(words.count + 1))))
      for name in [
        words.joined(separator: separator), words.joined(separator: separator).uppercased(),
        words.map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined(separator: separator),
        words[0] + words.dropFirst().map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined(),
      ] {
        #expect(SecretNames.contains(name), "\(name)")
      }
      #expect(!SecretNames.contains(harmless), "\(harmless)")
    }
  }
}
