import NetOptCore

extension SealedKey: SchemeKind {
  static let optionNames = SaltedMD5.optionNames + ["headers", "inner", "platform_key_id", "seal_nonce"]

  static func scheme(
    _ options: JSONPart?, isLenient: Bool, keys: KeyRing
  ) throws(JSONFault) -> Result<any SigningScheme, SigningFault> {
    var platform: SigningKey?
    if let part = try options?.member("platform_key_id") {
      platform = keys[try part.string()]
      if platform == nil { throw part.fault("the key ring does not have this key") }
    }
    var nonce: [UInt8]?
    if let part = try options?.member("seal_nonce") {
      nonce = Base64.decode(try part.string().utf8, .url)
      guard nonce?.count == 12 else { throw part.fault("must be 12 bytes in base64url, 16 characters") }
    }
    let inner: Result<SealedKey.Inner, SigningFault>
    switch try options?.member("inner")?.string() ?? "netopt1" {
    case "netopt1": inner = try NetOpt1.made(of: options).map { .netopt1($0) }
    case "salted-md5": inner = try SaltedMD5.made(of: options).map { .saltedMD5($0) }
    default: throw JSONFault(location: "$.options.inner", rule: "must be netopt1 or salted-md5")
    }
    return inner.map { SealedKey($0, platform: platform, sealNonce: nonce) }
  }

  static func recognises(_ request: SigningRequest) -> Bool {
    request.headers.contains(name: "X-Netopt-Sealed")
  }
}
