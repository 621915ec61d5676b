import NetOptCore
import NetOptCrypto

/// The scheme `netopt1`: HMAC-SHA256 under a key derived from secret and salt. The string to sign has eleven
/// kinds of lines: label, key id, time, nonce, method, authority, path, parameters, field names, fields, and
/// the digest of the body. docs/signing.md defines the string byte by byte.
package struct NetOpt1: SigningScheme {
  /// The first word of the Authorization field, and the first line of the string to sign.
  static let label = "NETOPT1-HMAC-SHA256"
  /// The names of the fields that are signed by default, if the request has them.
  static let usualFields = ["content-encoding", "content-type", "idempotency-key"]
  /// The names of the parameters in the Authorization field, in the order in which a signer writes them.
  private static let parameterNames: [StaticString] = ["keyid", "ts", "nonce", "headers", "sig"]

  package let name = SchemeName.netopt1
  /// The names of the fields to sign, in lower case, sorted and each once. `nil` for the default fields
  /// (`usualFields`) that the request has.
  private let fields: [String]?

  /// Makes the scheme.
  ///
  /// - Parameter fields: the names of the fields to sign and, for a verifier, of the fields that must be
  ///   signed. `nil` for content-type, content-encoding and idempotency-key, each only if the request has it.
  /// - Throws: `malformedRequest` for an invalid field name and for more than 256 names.
  package init(fields: [String]? = nil) throws(SigningFault) {
    for field in fields ?? [] where !HeaderFields.isToken(field) {
      throw SigningFault(.malformedRequest, "a field to sign is not a token")
    }
    let sorted = fields.map { Set($0.map { $0.loweredASCII }).sorted() }
    guard sorted?.count ?? 0 <= Claim.mostCovered else {
      throw SigningFault(
        .malformedRequest,
        "\(sorted?.count ?? 0) fields are to be signed, but the limit is \(Claim.mostCovered)")
    }
    self.fields = sorted
  }

  /// Makes the scheme with the default fields.
  package init() { fields = nil }

  /// Returns the names of the fields that a signer signs in a request: `fields`, or the default fields that
  /// the request has.
  private func required(_ request: SigningRequest) -> [String] {
    fields ?? Self.usualFields.filter { request.hasField($0) }
  }

  // MARK: Signing

  package func sign(
    _ request: SigningRequest, with key: SigningKey, at moment: SigningMoment
  ) throws(SigningFault) -> SignedRequest {
    try request.check()
    try request.checkEncoding(isForm: true)
    guard Self.isKeyID(key.id) else {
      throw SigningFault(
        .malformedSignature,
        "the key id \(key.id) is not 1 to 64 of A-Z a-z 0-9 . _ -, which netopt1 requires")
    }
    guard moment.now > 0 else { throw SigningFault(.malformedSignature, "the time is not after 1970") }
    let nonce: String
    if let given = moment.nonce {
      guard Self.isNonce(given) else {
        throw SigningFault(.malformedSignature, "the nonce is not 16 bytes in base64url, 22 characters")
      }
      nonce = given
    } else {
      nonce = try NonceSource.next()
    }
    let claim = Claim(
      keyID: key.id, created: moment.now, nonce: nonce, covered: required(request), signature: [])
    let strings = try strings(claim, request, [])
    let mac = try key.netopt1MAC()
    let code = try crypto { () throws(CryptoError) in try mac.code(of: strings.toSign) }
    return Self.signed(claim, code, strings)
  }

  /// Makes the result of `sign`. Its Authorization field carries the values of the claim and the MAC of the
  /// string to sign (`code`, 32 bytes).
  private static func signed(_ claim: Claim, _ code: [UInt8], _ strings: SigningStrings) -> SignedRequest {
    var value: [UInt8] = []
    value.reserveCapacity(256)
    value.append(text: label)
    value.append(text: " keyid=")
    value.append(text: claim.keyID)
    value.append(text: ",ts=")
    value.append(decimal: claim.created ?? 0)
    value.append(text: ",nonce=")
    value.append(text: claim.nonce ?? "")
    value.append(text: ",headers=")
    append(claim.covered, to: &value)
    value.append(text: ",sig=")
    let signature = Hex.text(code)
    value.append(text: signature)
    return SignedRequest(
      .netopt1, claim.keyID,
      headers: [HeaderField("Authorization", String(decoding: value, as: UTF8.self))],
      signature: signature, strings: strings)
  }

  /// Appends the names of the signed fields, separated by ";".
  private static func append(_ names: [String], to out: inout [UInt8]) {
    for (index, name) in names.enumerated() {
      if index > 0 { out.append(0x3b) }
      out.append(text: name)
    }
  }

  // MARK: The string

  package func strings(
    _ claim: Claim, _ request: SigningRequest, _ mistakes: Mistakes
  ) throws(SigningFault) -> SigningStrings {
    var out: [UInt8] = []
    out.reserveCapacity(512)
    out.append(text: Self.label)
    out.append(0x0a)
    out.append(text: claim.keyID)
    out.append(0x0a)
    out.append(decimal: claim.created ?? 0)
    if mistakes.contains(.timeInMilliseconds) { out.append(text: "000") }
    out.append(0x0a)
    out.append(text: claim.nonce ?? "")
    out.append(0x0a)
    out.append(text: mistakes.contains(.methodLowerCase) ? request.method.loweredASCII : request.method)
    out.append(0x0a)
    request.appendAuthority(to: &out, keepsPort: mistakes.contains(.portKept))
    out.append(0x0a)
    Self.appendPath(request.path, to: &out, mistakes)
    out.append(0x0a)
    if mistakes.isEmpty {
      if let query = request.query { QueryParameters.append(query: query, plus: true, to: &out) }
    } else if let query = request.query, !mistakes.contains(.queryLeftOut) {
      QueryParameters(query, plus: true).append(
        to: &out, style: mistakes.style, order: mistakes.order(insteadOf: .byKey),
        dropsEmpty: mistakes.contains(.emptiesDropped))
    }
    out.append(0x0a)
    Self.append(claim.covered, to: &out)
    out.append(0x0a)
    for name in claim.covered {
      out.append(text: name)
      out.append(0x3a)
      guard try request.appendValue(of: name, to: &out) else {
        throw SigningFault(.missingField, "the field \(name) is to be signed but is missing")
      }
      out.append(0x0a)
    }
    out.append(hex: try request.bodySHA256())
    return SigningStrings(mistakes.applied(toWhole: out))
  }

  /// Appends the path. Each segment is percent-decoded once and then encoded, so paths that differ only in
  /// needless encoding have one signature. With mistakes, appends the path as a signer that makes these
  /// mistakes writes it.
  static func appendPath(_ path: String, to out: inout [UInt8], _ mistakes: Mistakes) {
    if mistakes.contains(.pathNotNormalised) {
      out.append(text: path)
      return
    }
    var path = mistakes.contains(.pathNormalised) ? PathNormalisation.normalised(path) : path
    var style = PercentEncoding.Style.plain
    if mistakes.contains(.lowerCaseHex) { style.insert(.lowerHex) }
    if mistakes.contains(.pathEncodedTwice) { style.insert(.twice) }
    path.withUTF8 { bytes in
      // Most paths contain only bytes that need no encoding.
      if bytes.allSatisfy({ ByteClass.isUnreserved($0) || $0 == 0x2f }) {
        out += bytes
        return
      }
      for (index, segment) in bytes.split(separator: 0x2f, omittingEmptySubsequences: false).enumerated() {
        if index > 0 { out.append(0x2f) }
        PercentEncoding.append(PercentEncoding.decoded(segment), to: &out, style)
      }
    }
  }

  // MARK: Verifying

  package func claim(in request: SigningRequest) throws(SigningFault) -> Claim {
    guard let value = try request.onlyValue(of: "Authorization"), value.hasPrefix(Self.label) else {
      throw SigningFault(.noSignature, "there is no Authorization field with \(Self.label)")
    }
    try request.checkEncoding(isForm: true)
    var text = value
    let read = text.withUTF8 { bytes in
      Result { () throws(SigningFault) in try Self.claim(bytes[Self.label.utf8.count...]) }
    }
    return try read.get()
  }

  /// Reads the parameters that follow the label in the Authorization field.
  private static func claim(_ text: Slice<UnsafeBufferPointer<UInt8>>) throws(SigningFault) -> Claim {
    guard text.first == 0x20 else {
      throw SigningFault(.malformedSignature, "a space and the parameters must follow \(label)")
    }
    let values = try parameters(text)
    guard let keyID = string(values[0]), isKeyID(keyID) else {
      throw SigningFault(.malformedSignature, "keyid is not 1 to 64 of A-Z a-z 0-9 . _ -")
    }
    guard let time = string(values[1]).flatMap(time) else {
      throw SigningFault(.malformedSignature, "ts is not in whole seconds since 1970 without a leading zero")
    }
    guard let nonce = string(values[2]), isNonce(nonce) else {
      throw SigningFault(.malformedSignature, "nonce is not 16 bytes in base64url, 22 characters")
    }
    guard let signature = Hex.bytes(values[4]), signature.count == 32 else {
      throw SigningFault(.malformedSignature, "sig is not 64 hexadecimal digits in lower case")
    }
    return Claim(
      keyID: keyID, created: time, nonce: nonce,
      covered: try names(values[3]),
      signature: signature)
  }

  /// The text of a parameter; `nil` if it has more than 64 bytes. No valid key id, time or nonce is longer.
  private static func string(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> String? {
    bytes.count <= 64 ? String(decoding: bytes, as: UTF8.self) : nil
  }

  /// Returns the values of the parameters, in the order of `parameterNames`. Refuses a parameter that is
  /// missing, unknown or repeated.
  private static func parameters(
    _ text: Slice<UnsafeBufferPointer<UInt8>>
  ) throws(SigningFault) -> [Slice<UnsafeBufferPointer<UInt8>>] {
    let none = text[text.startIndex..<text.startIndex]
    var values = [none, none, none, none, none]
    var seen = 0
    var rest = text
    while true {
      let end = rest.firstIndex(of: 0x2c) ?? rest.endIndex
      let pair = ByteClass.trimmed(rest[..<end])
      guard let mark = pair.firstIndex(of: 0x3d) else {
        throw SigningFault(.malformedSignature, "Authorization has a part that is not name=value")
      }
      let name = pair[..<mark]
      guard
        let index = parameterNames.firstIndex(where: { known in
          known.withUTF8Buffer { name.elementsEqual($0) }
        })
      else {
        throw SigningFault(.malformedSignature, "Authorization has a parameter that netopt1 does not have")
      }
      guard seen & 1 << index == 0 else {
        throw SigningFault(.malformedSignature, "Authorization has \(parameterNames[index]) twice")
      }
      seen |= 1 << index
      values[index] = pair[(mark + 1)...]
      guard end < rest.endIndex else { break }
      rest = rest[(end + 1)...]
    }
    if let missing = parameterNames.indices.first(where: { seen & 1 << $0 == 0 }) {
      throw SigningFault(.malformedSignature, "Authorization lacks \(parameterNames[missing])")
    }
    return values
  }

  /// Reads the list of signed fields: names in lower case, in ascending order, each once, separated by ";".
  /// Refuses more than 256 names, and the name `authorization`, because this field carries the signature.
  private static func names(
    _ text: Slice<UnsafeBufferPointer<UInt8>>
  ) throws(SigningFault) -> [String] {
    if text.isEmpty { return [] }
    var names: [String] = []
    var start = text.startIndex
    var isFine = true
    for index in text.startIndex...text.endIndex {
      let byte = index < text.endIndex ? text[index] : 0x3b
      if byte == 0x3b {
        let name = String(decoding: text[start..<index], as: UTF8.self)
        if index == start || names.last.map({ $0.utf8.lexicographicallyPrecedes(name.utf8) }) == false {
          isFine = false
        }
        names.append(name)
        start = index + 1
      } else if (0x41...0x5a).contains(byte) || byte <= 0x20 || byte >= 0x7f {
        isFine = false
      }
    }
    guard isFine, names.allSatisfy({ ByteClass.all($0, ByteClass.isUnreserved) || HeaderFields.isToken($0) }),
      !names.contains("authorization"), names.count <= Claim.mostCovered
    else {
      throw SigningFault(
        .malformedSignature,
        "headers is not a list of up to \(Claim.mostCovered) names in lower case, sorted, each once, parted by ;"
      )
    }
    return names
  }

  /// Whether a text can be a key id in this scheme: 1 to 64 letters, digits, ".", "_" and "-".
  static func isKeyID(_ text: String) -> Bool {
    (1...64).contains(text.utf8.count)
      && ByteClass.all(text) { ByteClass.isUnreserved($0) && $0 != UInt8(ascii: "~") }
  }

  /// Whether a text is a nonce: 16 bytes in base64url, which are 22 characters. The last character has four
  /// unused bits, which must be 0.
  private static func isNonce(_ text: String) -> Bool {
    guard text.utf8.count == 22, let last = text.utf8.last, "AQgw".utf8.contains(last) else { return false }
    return ByteClass.all(text) { ByteClass.isUnreserved($0) && $0 != 0x2e && $0 != 0x7e }
  }

  /// Reads a time in whole seconds since 1970: 1 to 15 digits without a leading zero; `nil` for any other
  /// text.
  static func time(_ text: String) -> Int64? {
    guard (1...15).contains(text.utf8.count), text.utf8.allSatisfy(ByteClass.isDigit), !text.hasPrefix("0")
    else { return nil }
    return Int64(text)
  }

  package func coverageFault(_ claim: Claim, _ request: SigningRequest) -> SigningFault? {
    for name in fields ?? Self.usualFields
    where !claim.covered.contains(name) && (fields != nil || request.hasField(name)) {
      return SigningFault(
        .notCovered, "the field \(name) is not signed; the signer must name it in headers")
    }
    for name in claim.covered where !request.hasField(name) {
      return SigningFault(.missingField, "the field \(name) is signed but is missing")
    }
    return nil
  }

  package func coverageNote(_ claim: Claim, _ request: SigningRequest) -> (text: String, isWeak: Bool) {
    let plus = !ByteClass.all(request.query ?? "") { $0 != 0x2b }
    return (plus ? "warning: a + in the query was read as a space; write %20" : "", false)
  }

  package func isValidSignature(
    _ claim: Claim, of string: [UInt8], by key: SigningKey
  ) throws(SigningFault) -> Bool {
    let mac = try key.netopt1MAC()
    return try crypto { () throws(CryptoError) in try mac.isCode(claim.signature, of: string.span) }
  }

  package func expectedSignature(of string: [UInt8], _ claim: Claim, by key: SigningKey) -> String? {
    (try? key.netopt1MAC().code(of: string)).map(Hex.text)
  }

  // MARK: Diagnosis

  package var mistakes: [SignerMistake] { Self.mistakes }

  private static let mistakes: [SignerMistake] = [
    .plusForSpace, .lowerCaseHex, .emptiesDropped, .duplicateOrder, .paramsNotSorted, .encodedTwice,
    .notEncoded,
    .trailingNewline, .carriageReturns, .portKept, .pathNotNormalised, .pathNormalised, .pathEncodedTwice,
    .methodLowerCase, .queryLeftOut, .timeInMilliseconds,
  ]

  package func keyCandidates(
    _ claim: Claim, _ request: SigningRequest, _ key: SigningKey
  ) -> [KeyCandidate] {
    guard let secret = try? key.secret() else { return [] }
    var candidates: [KeyCandidate] = []
    let signature = claim.signature
    func add(_ mistake: SignerMistake, _ detail: String, _ mac: HMAC?) {
      guard let mac else { return }
      candidates.append(
        KeyCandidate(mistake: mistake, detail: detail) { string throws(SigningFault) in
          try crypto { () throws(CryptoError) in try mac.isCode(signature, of: string.span) }
        })
    }
    add(.wrongSalt, "the key was derived without a salt", try? SigningKey.derivedMAC(secret, salt: ""))
    add(
      .wrongSalt, "the key was derived with the salt and a line end",
      try? SigningKey.derivedMAC(secret, salt: key.salt + "\n"))
    add(
      .wrongSalt, "the secret itself was used as the key; it must be derived with the salt",
      try? key.plainMAC())
    let salted = try? crypto { () throws(CryptoError) in
      var derived = try HMAC(.sha256, key: secret).code(of: key.salt)
      defer { wipe(&derived) }
      return try HMAC(.sha256, key: SecretBytes(copying: derived))
    }
    add(.wrongSalt, "the key was derived from the salt without \"netopt1\" LF before it", salted)
    candidates.append(
      KeyCandidate(
        mistake: .wrongScheme, detail: "the signature is a plain SHA-256 of secret and string, not an HMAC"
      ) {
        string throws(SigningFault) in
        let digest = try crypto { () throws(CryptoError) in
          var digest = try Digest(.sha256)
          secret.withSpan { digest.update($0) }
          digest.update(string)
          return try digest.finish()
        }
        return constantTimeEqual(digest, signature)
      })
    candidates.append(
      KeyCandidate(mistake: .wrongScheme, detail: "the signature is a salted sha256, as in salted-md5") {
        _ throws(SigningFault) in
        let salted = SaltedMD5.sha256
        return constantTimeEqual(try salted.code(of: salted.parts(of: request, []), by: key), signature)
      })
    return candidates
  }
}
