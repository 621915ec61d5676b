import NetOptCore

/// Reads the options of a scheme from JSON, as JSON Lines and the command line give them (docs/signing.md).
package enum SchemeOptions {
  /// Makes a scheme.
  ///
  /// - Parameters:
  ///   - options: the object, or `nil` for the defaults.
  ///   - isLenient: whether a verifier in `rfc9421` insists on components only when the options name them; the assurance is then weak.
  ///   - keys: where the platform's key is, for signing in `sealed-key`.
  package static func scheme(
    _ name: SchemeName, _ options: JSONPart?, isLenient: Bool, keys: KeyRing
  ) throws(OptionFault) -> any SigningScheme {
    do {
      for member in try options?.members() ?? [] where !(names[name] ?? []).contains(member.name) {
        throw member.value.fault("\(name.rawValue) has no such option")
      }
      let value = try build(name, options, isLenient, keys)
      return try value.get()
    } catch let fault as JSONFault {
      throw OptionFault(detail: "\(fault.place): \(fault.rule)")
    } catch {
      throw OptionFault(detail: (error as? SigningFault)?.detail ?? "\(error)")
    }
  }

  private static let salted = [
    "api", "hash", "rounds", "secret", "salt", "keep_empty", "encode", "key_param", "sig_param",
  ]
  private static let names: [SchemeName: [String]] = [
    .netopt1: ["headers"],
    .rfc9421: ["label", "components", "created", "expires", "nonce", "tag", "alg"],
    .sigv4: ["region", "service", "normalize_path", "sign_body", "omit_session_token", "presign_seconds"],
    .saltedMD5: salted,
    .sealedKey: salted + ["headers", "inner", "platform_key_id", "seal_nonce"],
  ]

  private static func build(
    _ name: SchemeName, _ options: JSONPart?, _ isLenient: Bool, _ keys: KeyRing
  ) throws(JSONFault) -> Result<any SigningScheme, SigningFault> {
    switch name {
    case .netopt1: return try netopt1(options).map { $0 }
    case .rfc9421: return try rfc9421(options, isLenient)
    case .sigv4: return .success(SigV4(try sigV4(options)))
    case .saltedMD5: return try saltedMD5(options).map { $0 }
    case .sealedKey: return try sealedKey(options, keys)
    }
  }

  private static func netopt1(_ options: JSONPart?) throws(JSONFault) -> Result<NetOpt1, SigningFault> {
    let fields = try options?.member("headers")?.strings()
    return Result { () throws(SigningFault) in try NetOpt1(fields: fields) }
  }

  private static func rfc9421(
    _ options: JSONPart?, _ isLenient: Bool
  ) throws(JSONFault) -> Result<any SigningScheme, SigningFault> {
    var made = RFC9421.Options()
    if let part = try options?.member("label") {
      let label = try part.string()
      guard StructuredFieldSerializer.isKey(label) else {
        throw part.fault("is a key of RFC 8941: small letters, digits, _ - . *, with a letter or * in front")
      }
      made.label = label
    }
    if let components = try options?.member("components") {
      var list: [SignatureComponent] = []
      for part in try components.elements() {
        do throws(SigningFault) { list.append(try SignatureComponent(text: try text(part))) } catch {
          throw part.fault(error.detail)
        }
      }
      made.components = list
      // Who says exactly what is to be signed gets exactly that.
      made.makesNonce = false
    }
    made.created = try options?.member("created")?.integer()
    made.expires = try options?.member("expires")?.integer()
    made.nonce = try options?.member("nonce")?.string()
    made.tag = try options?.member("tag")?.string()
    if let part = try options?.member("alg") {
      guard let algorithm = RFC9421.Algorithm(try part.string()) else {
        throw part.fault("is hmac-sha256, ed25519, ecdsa-p256-sha256, rsa-pss-sha512 or rsa-v1_5-sha256")
      }
      made.algorithm = algorithm
    }
    return .success(RFC9421(made, isLenient: isLenient))
  }

  private static func text(_ part: JSONPart) throws(SigningFault) -> String {
    do { return try part.string() } catch { throw SigningFault(.malformedSignature, error.rule) }
  }

  private static func sigV4(_ options: JSONPart?) throws(JSONFault) -> SigV4.Options {
    var made = SigV4.Options()
    made.region = try options?.member("region")?.string()
    made.service = try options?.member("service")?.string()
    made.normalizePath = try options?.member("normalize_path")?.bool() ?? true
    made.signBody = try options?.member("sign_body")?.bool() ?? false
    made.omitSessionToken = try options?.member("omit_session_token")?.bool() ?? false
    made.presignSeconds = try options?.member("presign_seconds").map { (part) throws(JSONFault) in
      Int(clamping: try part.integer())
    }
    return made
  }

  private static func saltedMD5(_ options: JSONPart?) throws(JSONFault) -> Result<SaltedMD5, SigningFault> {
    var made = SaltedMD5.Options()
    made.api = try options?.member("api")?.string()
    if let hash: SaltedMD5.Hash = try word(options, "hash") { made.hash = hash }
    if let rounds = try options?.member("rounds")?.integer() { made.rounds = Int(clamping: rounds) }
    if let place: SaltedMD5.Place = try word(options, "secret") { made.secret = place }
    if let place: SaltedMD5.Place = try word(options, "salt") { made.salt = place }
    made.keepEmpty = try options?.member("keep_empty")?.bool() ?? false
    made.encode = try options?.member("encode")?.bool() ?? false
    let names = (try options?.member("key_param")?.string(), try options?.member("sig_param")?.string())
    if let key = names.0, let signature = names.1, key != signature, !key.isEmpty, !signature.isEmpty {
      made.parameters = (key, signature)
    } else if names.0 != nil || names.1 != nil, let options {
      throw options.fault("key_param and sig_param belong together, and differ")
    }
    let complete = made
    return Result { () throws(SigningFault) in try SaltedMD5(complete) }
  }

  private static func word<Word: RawRepresentable & CaseIterable>(
    _ options: JSONPart?, _ name: String
  ) throws(JSONFault) -> Word? where Word.RawValue == String {
    guard let part = try options?.member(name) else { return nil }
    guard let word = Word(rawValue: try part.string()) else {
      throw part.fault("is \(Word.allCases.map(\.rawValue).joined(separator: " or "))")
    }
    return word
  }

  private static func sealedKey(
    _ options: JSONPart?, _ keys: KeyRing
  ) throws(JSONFault) -> Result<any SigningScheme, SigningFault> {
    var platform: SigningKey?
    if let part = try options?.member("platform_key_id") {
      platform = keys[try part.string()]
      if platform == nil { throw part.fault("the key ring has no such key") }
    }
    var nonce: [UInt8]?
    if let part = try options?.member("seal_nonce") {
      nonce = Base64.decode(try part.string().utf8, .url)
      guard nonce?.count == 12 else { throw part.fault("is 12 bytes in base64url, 16 characters") }
    }
    let inner: Result<SealedKey.Inner, SigningFault>
    switch try options?.member("inner")?.string() ?? "netopt1" {
    case "netopt1": inner = try netopt1(options).map { .netopt1($0) }
    case "salted-md5": inner = try saltedMD5(options).map { .saltedMD5($0) }
    default: throw JSONFault(place: "$.options.inner", rule: "is netopt1 or salted-md5")
    }
    return inner.map { SealedKey($0, platform: platform, sealNonce: nonce) }
  }
}

/// What is wrong with the options of a scheme.
package struct OptionFault: Error, Hashable, Sendable {
  /// The place and the rule.
  package let detail: String
}
