/// Names of parameters and fields that speak of secrets.
package enum SecretNames {
  /// What is in no other words.
  static let parts = [
    "token", "secret", "passw", "passphrase", "credential", "signature", "session", "sessid", "apikey",
    "accesskey",
    "authoriz", "bearer", "assertion", "samlre", "csrf", "xsrf", "cookie", "hmac", "authkey", "appkey",
    "privatekey", "privkey", "passcode", "creds", "totp", "passkey", "licensekey", "licencekey", "masterkey",
    "accountkey", "storagekey", "sharedkey", "enckey", "encryptionkey", "signkey", "signingkey", "pincode",
    "mnemonic", "hdnea", "hdnts",
  ]
  /// What is in no other words when nothing, or one of `-`, `_` and `.`, stands between its own: `code_verifier`, `Connection-String`.
  static let pairs = [
    "code verifier", "device code", "user code", "connection string", "conn str",
  ]
  /// What is a part of other words too: `keyword`, `author`, `shipping`, `side`.
  static let words = [
    "pass", "pwd", "pw", "key", "auth", "oauth", "sig", "sid", "jwt", "otp", "pin", "sas", "ticket",
    "psk", "dsn", "cred", "pswd", "jwe", "jws", "tok", "tkn", "mfa",
  ]
  /// What is harmless in longer names, as `country_code` is.
  static let names = ["code", "auth_code", "authcode"]

  private static let patterns = NamePatterns(parts: partsAndPairs, words: words, names: names)

  private static var partsAndPairs: [String] {
    parts + pairs.flatMap { pair in ["", "-", "_", "."].map { pair.replacing(" ", with: $0) } }
  }

  /// The same names and others.
  package static func patterns(and others: [String]) -> NamePatterns {
    NamePatterns(parts: partsAndPairs, words: words, names: names + others)
  }

  /// Whether a name speaks of a secret: `access_token`, `apiKey`, `X-Vault-Token`, `sig`. Case does not matter, but that
  /// words may begin with a capital.
  package static func contains(_ name: String) -> Bool { patterns.match(name) }
}
