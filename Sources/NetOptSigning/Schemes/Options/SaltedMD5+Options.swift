import NetOptCore

extension SaltedMD5: SchemeKind {
  static let isWeak = true
  static let optionNames = [
    "api", "hash", "rounds", "secret", "salt", "keep_empty", "encode", "key_param", "sig_param",
  ]

  static func scheme(
    _ options: JSONPart?, isLenient: Bool, keys: KeyRing
  ) throws(JSONFault) -> Result<any SigningScheme, SigningFault> {
    try made(of: options).map { $0 }
  }

  /// Makes the scheme from its options. `sealed-key` also calls this with its own options, which include
  /// those of the scheme that it contains.
  static func made(of options: JSONPart?) throws(JSONFault) -> Result<SaltedMD5, SigningFault> {
    var made = SaltedMD5.Options()
    made.api = try options?.member("api")?.string()
    if let hash: SaltedMD5.Hash = try SchemeOptions.word(options, "hash") { made.hash = hash }
    if let rounds = try options?.member("rounds")?.integer() { made.rounds = Int(clamping: rounds) }
    if let position: SaltedMD5.Position = try SchemeOptions.word(options, "secret") { made.secret = position }
    if let position: SaltedMD5.Position = try SchemeOptions.word(options, "salt") { made.salt = position }
    made.keepEmpty = try options?.member("keep_empty")?.bool() ?? false
    made.encode = try options?.member("encode")?.bool() ?? false
    let names = (try options?.member("key_param")?.string(), try options?.member("sig_param")?.string())
    if let key = names.0, let signature = names.1, key != signature, !key.isEmpty, !signature.isEmpty {
      made.parameters = (key, signature)
    } else if names.0 != nil || names.1 != nil, let options {
      throw options.fault("key_param and sig_param must be set together, and must differ")
    }
    let complete = made
    return Result { () throws(SigningFault) in try SaltedMD5(complete) }
  }
}
