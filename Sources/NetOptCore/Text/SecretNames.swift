/// The names of parameters and fields that suggest secrets.
package enum SecretNames {
  /// Texts that suggest a secret wherever they occur in a name.
  static let parts = [
    "token", "secret", "passw", "passphrase", "credential", "signature", "session", "sessid", "apikey",
    "accesskey",
    "authoriz", "bearer", "assertion", "samlre", "csrf", "xsrf", "cookie", "hmac", "authkey", "appkey",
    "privatekey", "privkey", "passcode", "creds", "totp", "passkey", "licensekey", "licencekey", "masterkey",
    "accountkey", "storagekey", "sharedkey", "enckey", "encryptionkey", "signkey", "signingkey", "pincode",
    "mnemonic", "hdnea", "hdnts",
  ]
  /// Pairs of words that suggest a secret wherever they occur in a name. The words may be joined, or
  /// separated by `-`, `_` or `.`: `code_verifier`, `Connection-String`.
  static let pairs = [
    "code verifier", "device code", "user code", "connection string", "conn str",
  ]
  /// Texts that suggest a secret only as whole words of a name, because they are also parts of harmless
  /// words, such as `keyword`, `author`, `shipping` and `side`.
  static let words = [
    "pass", "pwd", "pw", "key", "auth", "oauth", "sig", "sid", "jwt", "otp", "pin", "sas", "ticket",
    "psk", "dsn", "cred", "pswd", "jwe", "jws", "tok", "tkn", "mfa",
  ]
  /// Names that suggest a secret only as whole names. Inside a longer name, such as `country_code`, they are
  /// harmless.
  static let names = ["code", "auth_code", "authcode"]

  private static let patterns = NamePatterns(parts: partsAndPairs, words: words, names: names)

  /// The texts of `parts`, and each of `pairs` with each separator.
  private static var partsAndPairs: [String] {
    parts + pairs.flatMap { pair in ["", "-", "_", "."].map { pair.replacing(" ", with: $0) } }
  }

  /// Returns the patterns of this type, and one pattern more for each of `others`. A name in `others` matches
  /// only as a whole name.
  package static func patterns(and others: some Sequence<String>) -> NamePatterns {
    patterns.adding(names: others)
  }

  /// Whether a name suggests a secret: `access_token`, `apiKey`, `X-Vault-Token`, `sig`. Ignores case, except
  /// that a capital may begin a word.
  package static func contains(_ name: String) -> Bool { patterns.match(name) }
}
