/// Names of parameters and fields that speak of secrets.
package enum SecretNames {
  /// What is in no other words.
  static let parts = [
    "token", "secret", "passw", "passphrase", "credential", "signature", "session", "sessid", "apikey",
    "accesskey",
    "authoriz", "bearer", "assertion", "samlre", "csrf", "xsrf", "cookie", "hmac", "authkey", "appkey",
    "privatekey", "privkey", "passcode", "creds", "totp",
  ]
  /// What is in no other words when nothing, or one of `-`, `_` and `.`, stands between its own: `code_verifier`, `Connection-String`.
  static let pairs = ["code verifier", "connection string", "conn str"]
  /// What is a part of other words too: `keyword`, `author`, `shipping`, `side`.
  static let words = [
    "pass", "pwd", "pw", "key", "auth", "oauth", "sig", "sid", "jwt", "otp", "pin", "sas", "ticket",
    "psk", "dsn",
  ]
  /// What is harmless in longer names, as `country_code` is.
  static let names = ["code", "auth_code", "authcode"]

  /// Where in a name a text has to stand.
  private enum Place { case anywhere, asWord, alone }

  /// Small letters, and where they have to stand.
  private typealias Pattern = (text: [UInt8], place: Place)

  /// The patterns, by the two letters that each begins with: nearly no two letters of a harmless name are among them. Every request that
  /// may be answered from the cache has its fields looked at.
  private static let byBeginning: [[Pattern]] = {
    var table = [[Pattern]](repeating: [], count: 1024)
    let joined = pairs.flatMap { pair in ["", "-", "_", "."].map { pair.replacing(" ", with: $0) } }
    for (texts, place) in [(parts + joined, Place.anywhere), (words, .asWord), (names, .alone)] {
      for text in texts.map({ Array($0.utf8) }) { table[beginning(text[0], text[1])].append((text, place)) }
    }
    return table
  }()

  /// One number for two letters of any case. Bytes that are no letters share the numbers of letters.
  private static func beginning(_ first: UInt8, _ second: UInt8) -> Int {
    Int(first & 31) << 5 | Int(second & 31)
  }

  /// Whether a name speaks of a secret: `access_token`, `apiKey`, `X-Vault-Token`, `sig`. Case does not matter, but that
  /// words may begin with a capital.
  package static func contains(_ name: String) -> Bool {
    var name = name
    return name.withUTF8 { name in
      let table = byBeginning
      for index in name.indices.dropLast() {
        for pattern in table[beginning(name[index], name[index + 1])]
        where stands(pattern, at: index, in: name) {
          return true
        }
      }
      return false
    }
  }

  private static func stands(_ pattern: Pattern, at start: Int, in name: UnsafeBufferPointer<UInt8>) -> Bool {
    let end = start + pattern.text.count
    // A letter and its capital differ in 0x20. No byte that is no letter becomes one by it.
    guard end <= name.count, zip(pattern.text, name[start...]).allSatisfy({ $0 == $1 | 0x20 || $0 == $1 })
    else { return false }
    return switch pattern.place {
    case .anywhere: true
    case .asWord: endsWord(name, at: start) && endsWord(name, at: end)
    case .alone: start == 0 && end == name.count
    }
  }

  /// Whether a word ends at a position, or one begins: where a letter does not go on, before a capital behind a small letter, and before the
  /// last of several capitals in front of a small one (`AWSKey`).
  private static func endsWord(_ name: UnsafeBufferPointer<UInt8>, at position: Int) -> Bool {
    guard position > 0, position < name.count else { return true }
    let (before, after) = (name[position - 1], name[position])
    guard isLetter(before), isLetter(after) else { return true }
    guard after & 0x20 == 0 else { return false }
    return before & 0x20 != 0 || position + 1 < name.count && (0x61...0x7a).contains(name[position + 1])
  }

  private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7a).contains(byte | 0x20) }
}
