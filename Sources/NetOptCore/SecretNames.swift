/// Names of parameters and fields that speak of secrets.
package enum SecretNames {
  /// What is in no other words.
  private static let parts = [
    "token", "secret", "passw", "passphrase", "credential", "signature", "session", "sessid", "apikey",
    "accesskey",
    "authoriz", "bearer", "assertion", "samlre", "csrf", "xsrf", "cookie", "hmac",
  ]
  /// What is a part of other words too: `keyword`, `author`, `shipping`, `side`.
  private static let words: Set = [
    "pass", "pwd", "pw", "key", "auth", "oauth", "sig", "sid", "jwt", "otp", "pin", "sas", "ticket",
  ]
  /// What is harmless in longer names, as `country_code` is.
  private static let names: Set = ["code", "auth_code", "authcode"]

  /// Whether a name speaks of a secret: `access_token`, `apiKey`, `X-Vault-Token`, `sig`. Case does not matter.
  package static func contains(_ name: String) -> Bool {
    let small = name.lowercased()
    return parts.contains(where: small.contains) || names.contains(small)
      || Self.words(of: name).contains(where: words.contains)
  }

  /// The words of a name in small letters: they end where a letter does not follow, and before a capital behind a small letter.
  private static func words(of name: String) -> [String] {
    var words: [String] = []
    var word: [UInt8] = []
    var wasSmall = false
    for byte in name.utf8 {
      let isSmall = (0x61...0x7a).contains(byte)
      let isLetter = isSmall || (0x41...0x5a).contains(byte)
      if !isLetter || wasSmall && !isSmall {
        words.append(String(decoding: word, as: UTF8.self))
        word = []
      }
      if isLetter { word.append(byte | 0x20) }
      wasSmall = isSmall
    }
    return words + [String(decoding: word, as: UTF8.self)]
  }
}
