import NetOptCore

extension RFC9421: SchemeKind {
  static let optionNames = ["label", "components", "created", "expires", "nonce", "tag", "alg"]

  static func scheme(
    _ options: JSONPart?, isLenient: Bool, keys: KeyRing
  ) throws(JSONFault) -> Result<any SigningScheme, SigningFault> {
    var made = RFC9421.Options()
    if let part = try options?.member("label") {
      let label = try part.string()
      guard StructuredFieldSerializer.isKey(label) else {
        throw part.fault(
          "must be a key of RFC 9651: small letters, digits, _ - . *, with a letter or * in front")
      }
      made.label = label
    }
    if let components = try options?.member("components") {
      var list: [SignatureComponent] = []
      let elements = try components.elements()
      guard elements.count <= Claim.mostCovered else {
        throw components.fault("has more than \(Claim.mostCovered) components")
      }
      for part in elements {
        do throws(SigningFault) { list.append(try SignatureComponent(text: try text(part))) } catch {
          throw part.fault(error.detail)
        }
      }
      made.components = list
      // A caller that names the components gets exactly these components, without an added nonce.
      made.makesNonce = false
    }
    made.created = try options?.member("created")?.integer()
    made.expires = try options?.member("expires")?.integer()
    made.nonce = try options?.member("nonce")?.string()
    made.tag = try options?.member("tag")?.string()
    if let part = try options?.member("alg") {
      guard let algorithm = RFC9421.Algorithm(try part.string()) else {
        throw part.fault("must be hmac-sha256, ed25519, ecdsa-p256-sha256, rsa-pss-sha512 or rsa-v1_5-sha256")
      }
      made.algorithm = algorithm
    }
    return .success(RFC9421(made, isLenient: isLenient))
  }

  /// Reads the text of a component. If the value is not a text, throws a `SigningFault` in place of the
  /// `JSONFault`, so that the caller needs to catch only `SigningFault`.
  private static func text(_ part: JSONPart) throws(SigningFault) -> String {
    do { return try part.string() } catch { throw SigningFault(.malformedSignature, error.rule) }
  }

  static func recognises(_ request: SigningRequest) -> Bool {
    request.headers.contains(name: "Signature-Input")
  }
}
