import NetOptCore
package import NetOptCrypto

/// HTTP Message Signatures (RFC 9421) of requests and responses.
package struct RFC9421: SigningScheme {
  /// The supported algorithms of those that RFC 9421, section 6.2.2, registers: all except ECDSA on P-384.
  package enum Algorithm: Hashable, Sendable {
    /// HMAC with SHA-256, for a shared secret.
    case hmacSHA256
    /// An algorithm for key pairs.
    case pair(SignatureAlgorithm)

    /// Makes the algorithm with a registered name; `nil` if the name is unknown or not supported.
    package init?(_ name: String) {
      let pair = SignatureAlgorithm(rawValue: name).map(Self.pair)
      guard let algorithm = name == "hmac-sha256" ? Self.hmacSHA256 : pair else { return nil }
      self = algorithm
    }
    /// The registered name, which is the value of the parameter `alg`.
    package var name: String {
      switch self {
      case .hmacSHA256: "hmac-sha256"
      case .pair(let algorithm): algorithm.rawValue
      }
    }
  }

  /// The options of a signer, and the requirements of a verifier.
  package struct Options: Sendable {
    /// The label, which names the signature in Signature-Input and Signature. For a signer, `nil` means
    /// `sig1`. For a verifier, `nil` means the only signature of the message.
    package var label: String?
    /// The components to sign; for a verifier, the components that must be signed. `nil` for method,
    /// authority, path and query (for a response, the status), the content digest if there is a body, and
    /// content-type, content-encoding and idempotency-key if the message has them.
    package var components: [SignatureComponent]?
    /// The time of signing that a signer states, in seconds since 1970; `nil` for that of `SigningMoment`.
    package var created: Int64?
    /// The last second since 1970 in which verifiers accept a signer's signature; `nil` for no such limit.
    package var expires: Int64?
    /// The nonce that a signer uses; `nil` for a random nonce, or for no nonce if `makesNonce` is false.
    package var nonce: String?
    /// Whether a signer adds a random nonce when neither `nonce` nor `SigningMoment` has one.
    package var makesNonce = true
    /// The tag of the application (RFC 9421, section 2.3). A verifier requires it; `nil` permits any tag.
    package var tag: String?
    /// The algorithm, which a signer also states as `alg`; a verifier refuses a signature that states another
    /// one. `nil` for the key's usual algorithm: a signer then states no `alg`.
    package var algorithm: Algorithm?
    /// Makes the defaults.
    package init() {}
  }

  /// The parts of a claim that only this scheme has. `algorithm` (`alg`) and `tag` are `nil` if not stated.
  struct Parts: Sendable {
    /// The label, which names the signature in Signature-Input and Signature.
    let label: String
    /// The signed components, in the order of the signature base.
    let components: [SignatureComponent]
    /// The value of `@signature-params`: the list of components and the signature's parameters, as text.
    let parameters: String
    let algorithm: String?
    let tag: String?
  }

  package let name = SchemeName.rfc9421
  package let options: Options
  /// Whether a verifier requires only the components that the options name: none, if they name none. The
  /// assurance is weak if a default component is not signed.
  private let isLenient: Bool

  /// Makes the scheme.
  package init(_ options: Options = Options(), isLenient: Bool = false) {
    self.options = options
    self.isLenient = isLenient
  }

  /// The components that a signer signs by default.
  static func usual(_ request: SigningRequest) -> [SignatureComponent] {
    var names = request.status == nil ? ["@method", "@authority", "@path", "@query"] : ["@status"]
    if request.hasBody { names.append("content-digest") }
    for name in ["content-type", "content-encoding", "idempotency-key"]
    where request.headers.contains(name: name) {
      names.append(name)
    }
    return names.map { SignatureComponent($0) }
  }

  // MARK: Signing
  package func sign(
    _ request: SigningRequest, with key: SigningKey, at moment: SigningMoment
  ) throws(SigningFault) -> SignedRequest {
    try request.check()
    let algorithm = try self.algorithm(nil, key)
    let components = options.components ?? Self.usual(request)
    var request = request
    var added: [HeaderField] = []
    if components.contains(where: { $0.name == "content-digest" }),
      !request.headers.contains(name: "Content-Digest")
    {
      added.append(try ContentDigest.field(of: request))
      request.headers.append(added[0])
    }
    let parameters = try innerList(components, key, moment)
    let label = options.label ?? "sig1"
    let parts = Parts(
      label: label, components: components, parameters: parameters, algorithm: nil, tag: nil)
    let claim = Claim(keyID: key.id, signature: [], parts: .rfc9421(parts))
    let strings = try strings(claim, request, [])
    let signature = try self.signature(of: strings.toSign, algorithm, key)
    let text = Base64.text(signature)
    // Existing signatures of the request stay.
    added.append(field("Signature-Input", request, "\(label)=\(parameters)"))
    added.append(field("Signature", request, "\(label)=:\(text):"))
    return SignedRequest(name, key.id, headers: added, signature: text, strings: strings)
  }

  /// Makes a field that is a dictionary: the members that the request's field already has, and a new member.
  private func field(_ name: String, _ request: SigningRequest, _ member: String) -> HeaderField {
    HeaderField(name, (request.headers[name].map { $0 + ", " } ?? "") + member)
  }

  /// Makes the value of `@signature-params`: the list of components with the parameters of the signature.
  private func innerList(
    _ components: [SignatureComponent], _ key: SigningKey, _ moment: SigningMoment
  ) throws(SigningFault) -> String {
    var parameters = Parameters()
    parameters["created"] = .integer(options.created ?? moment.now)
    parameters["keyid"] = .string(key.id)
    if let algorithm = options.algorithm { parameters["alg"] = .string(algorithm.name) }
    if let expires = options.expires { parameters["expires"] = .integer(expires) }
    if let nonce = options.nonce ?? moment.nonce {
      parameters["nonce"] = .string(nonce)
    } else if options.makesNonce {
      parameters["nonce"] = .string(try NonceSource.next())
    }
    if let tag = options.tag { parameters["tag"] = .string(tag) }
    do throws(StructuredFieldFault) {
      return try StructuredFieldSerializer.innerList(InnerList(components.map(\.item), parameters))
    } catch {
      throw SigningFault(.malformedSignature, "the signature's parameters are not valid: \(error.text)")
    }
  }

  /// Returns the algorithm to use with a key. `stated` is the `alg` of the signature; `nil` if it has none.
  private func algorithm(_ stated: String?, _ key: SigningKey) throws(SigningFault) -> Algorithm {
    if let stated, let wanted = options.algorithm, stated != wanted.name {
      throw SigningFault(
        .schemeNotAllowed, "the message is signed with \(stated), but \(wanted.name) is required")
    }
    var algorithm = options.algorithm
    if let stated {
      guard let known = Algorithm(stated) else {
        throw SigningFault(.malformedSignature, "alg names an unregistered algorithm")
      }
      algorithm = known
    }
    switch (try key.material(), algorithm) {
    case (.secret, nil), (.secret, .hmacSHA256): return .hmacSHA256
    case (.pair(let pair), nil): return .pair(pair.usualAlgorithm)
    case (.pair(let pair), .pair(let algorithm)) where pair.fits(algorithm): return .pair(algorithm)
    case (_, let algorithm):
      throw SigningFault(
        .schemeNotAllowed, "the key \(key.id) does not fit \(algorithm?.name ?? "")")
    }
  }

  /// Computes the signature of a signature base.
  private func signature(
    of string: [UInt8], _ algorithm: Algorithm, _ key: SigningKey
  ) throws(SigningFault) -> [UInt8] {
    switch (algorithm, try key.material()) {
    case (.pair(let algorithm), .pair(let pair)):
      guard pair.isPrivate else {
        throw SigningFault(.schemeNotAllowed, "the key \(key.id) is a public key, which can only verify")
      }
      return try crypto { () throws(CryptoError) in try pair.signature(of: string, algorithm) }
    default:
      let mac = try key.plainMAC()
      return try crypto { () throws(CryptoError) in try mac.code(of: string) }
    }
  }

  // MARK: The signature base
  package func strings(
    _ claim: Claim, _ request: SigningRequest, _ mistakes: Mistakes
  ) throws(SigningFault) -> SigningStrings {
    guard case .rfc9421(let parts) = claim.parts else { return SigningStrings([]) }
    var out: [UInt8] = []
    out.reserveCapacity(512)
    var parsed = ParsedRequest(request)
    for component in parts.components {
      out.append(text: component.identifier)
      out.append(text: ": ")
      try component.appendValue(of: &parsed, to: &out, mistakes)
      out.append(0x0a)
    }
    out.append(text: "\"@signature-params\": ")
    out.append(text: parts.parameters)
    return SigningStrings(mistakes.applied(toWhole: out))
  }

  // MARK: Verifying
  package func claim(in request: SigningRequest) throws(SigningFault) -> Claim {
    guard let inputs = request.headers["Signature-Input"], let signatures = request.headers["Signature"]
    else {
      throw SigningFault(.noSignature, "the message has no Signature-Input and Signature fields")
    }
    let input: StructuredDictionary
    let signature: StructuredDictionary
    do throws(StructuredFieldFault) {
      input = try StructuredFieldParser.dictionary(inputs.utf8)
      signature = try StructuredFieldParser.dictionary(signatures.utf8)
    } catch {
      throw SigningFault(
        .malformedSignature, "Signature-Input or Signature is not a dictionary: \(error.text)")
    }
    let label = try label(input, signature)
    guard case .innerList(let list) = input[label], case .item(let item) = signature[label],
      case .bytes(let bytes) = item.value
    else {
      throw SigningFault(
        .malformedSignature,
        "\(label) is not an inner list in Signature-Input, or not a byte sequence in Signature")
    }
    return try claim(label, list, bytes)
  }

  /// Returns the label of the signature to verify: `options.label`, or the only label in both fields.
  private func label(
    _ input: StructuredDictionary, _ signature: StructuredDictionary
  ) throws(SigningFault) -> String {
    let labels = input.keys.filter { signature[$0] != nil }
    if let wanted = options.label {
      guard labels.contains(wanted) else {
        throw SigningFault(.noSignature, "no signature has the label \(wanted)")
      }
      return wanted
    }
    guard let first = labels.first else {
      throw SigningFault(.noSignature, "no label occurs in both Signature-Input and Signature")
    }
    guard labels.count == 1 else {
      throw SigningFault(
        .malformedSignature,
        "there are several signatures, \(labels.joined(separator: ", ")); name one with the option label")
    }
    return first
  }

  /// Makes the claim from a member of Signature-Input (`list`) and the signature in Signature (`bytes`).
  private func claim(_ label: String, _ list: InnerList, _ bytes: [UInt8]) throws(SigningFault) -> Claim {
    guard list.items.count <= Claim.mostCovered else {
      throw SigningFault(.malformedSignature, "more than \(Claim.mostCovered) components are signed")
    }
    var components: [SignatureComponent] = []
    for item in list.items {
      let component = try SignatureComponent(item)
      guard !components.contains(where: { $0.item == component.item }) else {
        throw SigningFault(.malformedSignature, "the component \(component.identifier) is signed twice")
      }
      components.append(component)
    }
    func text(_ name: String) throws(SigningFault) -> String? {
      switch list.parameters[name] {
      case nil: return nil
      case .string(let text): return text
      default: throw SigningFault(.malformedSignature, "\(name) is not a string")
      }
    }
    func number(_ name: String) throws(SigningFault) -> Int64? {
      switch list.parameters[name] {
      case nil: return nil
      case .integer(let number): return number
      default: throw SigningFault(.malformedSignature, "\(name) is not an integer")
      }
    }
    let parameters: String
    do { parameters = try StructuredFieldSerializer.innerList(list) } catch {
      throw SigningFault(.malformedSignature, "\(label) in Signature-Input: \(error.text)")
    }
    let parts = Parts(
      label: label, components: components, parameters: parameters, algorithm: try text("alg"),
      tag: try text("tag"))
    return Claim(
      keyID: try text("keyid") ?? "", created: try number("created"), expires: try number("expires"),
      nonce: try text("nonce"), covered: components.map(\.identifier), signature: bytes,
      parts: .rfc9421(parts))
  }

  package func coverageFault(_ claim: Claim, _ request: SigningRequest) -> SigningFault? {
    guard case .rfc9421(let parts) = claim.parts else { return nil }
    if let tag = options.tag, tag != parts.tag {
      return SigningFault(.notCovered, "the tag is not \(tag)")
    }
    if claim.created == nil {
      return SigningFault(.notCovered, "the signature has no creation time (created)")
    }
    var parsed = ParsedRequest(request)
    for component in parts.components {
      do throws(SigningFault) {
        var value: [UInt8] = []
        try component.appendValue(of: &parsed, to: &value, [])
      } catch { return error }
    }
    let required = options.components ?? (isLenient ? [] : Self.usual(request))
    for component in required where !Self.covers(parts, component) {
      return SigningFault(.notCovered, "\(component.identifier) is not signed")
    }
    return nil
  }

  /// Whether a component is signed: by itself, or as a part of a signed component such as `@target-uri`.
  private static func covers(_ parts: Parts, _ component: SignatureComponent) -> Bool {
    let names = Set(parts.components.filter { $0.item.parameters.entries.isEmpty }.map(\.name))
    if parts.components.contains(where: { $0.item == component.item }) { return true }
    return switch component.name {
    case "@authority": names.contains("@target-uri")
    case "@path", "@query": names.contains("@target-uri") || names.contains("@request-target")
    default: false
    }
  }

  package func coverageNote(_ claim: Claim, _ request: SigningRequest) -> (text: String, isWeak: Bool) {
    guard case .rfc9421(let parts) = claim.parts else { return ("", false) }
    let missing = Self.usual(request).filter { !Self.covers(parts, $0) }.map(\.name)
    return missing.isEmpty
      ? ("", false) : ("weak: the signature does not cover \(missing.joined(separator: ", "))", true)
  }

  package func isValidSignature(
    _ claim: Claim, of string: [UInt8], by key: SigningKey
  ) throws(SigningFault) -> Bool {
    guard case .rfc9421(let parts) = claim.parts else { return false }
    switch (try algorithm(parts.algorithm, key), try key.material()) {
    case (.pair(let algorithm), .pair(let pair)):
      return try crypto { () throws(CryptoError) in
        try pair.isValidSignature(claim.signature, of: string, algorithm)
      }
    default:
      let mac = try key.plainMAC()
      return try crypto { () throws(CryptoError) in try mac.isCode(claim.signature, of: string.span) }
    }
  }

  package func expectedSignature(of string: [UInt8], _ claim: Claim, by key: SigningKey) -> String? {
    guard case .rfc9421(let parts) = claim.parts, let algorithm = try? algorithm(parts.algorithm, key) else {
      return nil
    }
    return (try? signature(of: string, algorithm, key)).map { Base64.text($0) }
  }

  package func decoy(for claim: Claim) -> SigningKey {
    guard case .rfc9421(let parts) = claim.parts else { return Decoys.secret }
    let stated = parts.algorithm.flatMap { Algorithm($0) } ?? options.algorithm
    return DecoyPairs.key(stated, signatureLength: claim.signature.count)
  }

  // MARK: Diagnosis
  package var mistakes: [SignerMistake] { Self.mistakes }
  private static let mistakes: [SignerMistake] = [
    .plusForSpace, .lowerCaseHex, .emptiesDropped, .encodedTwice, .notEncoded, .trailingNewline,
    .carriageReturns, .portKept, .pathNotNormalised, .pathNormalised, .pathEncodedTwice, .methodLowerCase,
    .queryLeftOut,
  ]

  package func keyCandidates(
    _ claim: Claim, _ request: SigningRequest, _ key: SigningKey
  ) -> [KeyCandidate] {
    guard case .rfc9421(let parts) = claim.parts, let material = try? key.material() else { return [] }
    let signature = claim.signature
    switch material {
    case .pair(let pair):
      return SignatureAlgorithm.allCases.filter { pair.fits($0) && $0.rawValue != parts.algorithm }.map {
        other in
        KeyCandidate(mistake: .wrongScheme, detail: "the algorithm is \(other.rawValue)") {
          string throws(SigningFault) in
          try crypto { () throws(CryptoError) in try pair.isValidSignature(signature, of: string, other) }
        }
      }
    case .secret(let secret):
      var candidates: [KeyCandidate] = []
      if let mac = try? key.netopt1MAC() {
        candidates.append(
          KeyCandidate(mistake: .wrongSalt, detail: "the key was derived with the salt, as netopt1 does it") {
            string throws(SigningFault) in
            try crypto { () throws(CryptoError) in try mac.isCode(signature, of: string.span) }
          })
      }
      if let mac = try? HMAC(.sha512, key: secret) {
        candidates.append(
          KeyCandidate(mistake: .wrongScheme, detail: "the algorithm is HMAC with SHA-512") {
            string throws(SigningFault) in
            try crypto { () throws(CryptoError) in try mac.isCode(signature, of: string.span) }
          })
      }
      return candidates
    }
  }
}
