import NetOptCore
import NetOptCrypto

/// AWS Signature Version 4. The signature is in the Authorization field (the header form) or in the query (a
/// presigned URL):
/// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html.
package struct SigV4: SigningScheme {
  /// The name of the algorithm: the first word of the Authorization field and the first line of the string to
  /// sign.
  static let label = "AWS4-HMAC-SHA256"
  /// The last part of the scope of every credential (`Parts.scope`).
  static let terminator = "aws4_request"
  /// The text that stands for the digest of a body that is not signed.
  static let unsignedPayload = "UNSIGNED-PAYLOAD"

  /// The options of a signer, and the requirements of a verifier.
  package struct Options: Sendable {
    /// The region, for example `us-east-1`. A signer needs it; `nil` lets a verifier accept any region.
    package var region: String?
    /// The service, for example `execute-api`. A signer needs it; `nil` lets a verifier accept any service.
    package var service: String?
    /// Whether dot segments and empty segments are removed from the path before signing. For `s3` they are
    /// never removed.
    package var normalizePath = true
    /// Whether a signer adds x-amz-content-sha256, the digest of the body, and signs this field. Presigned
    /// URLs ignore the option.
    package var signBody = false
    /// Whether the session token of the key (`SigningKey.sessionToken`) is not signed. A signer then adds the
    /// token to the request after signing.
    package var omitSessionToken = false
    /// The number of seconds for which a presigned URL is valid, 1 to 604,800; `nil` for the header form.
    package var presignSeconds: Int?

    /// Makes the defaults.
    package init() {}
  }

  /// The parts of a claim that only this scheme has.
  struct Parts: Sendable {
    /// The time of signing in UTC, for example `20150830T123600Z`.
    let date: String
    let region: String
    let service: String
    /// Whether the signature is in the query.
    let isPresigned: Bool

    /// The scope of the credential, for example `20150830/us-east-1/service/aws4_request`.
    var scope: String { "\(date.prefix(8))/\(region)/\(service)/\(SigV4.terminator)" }
  }

  package let name = SchemeName.sigv4
  package let options: Options

  /// Makes the scheme.
  package init(_ options: Options = Options()) { self.options = options }

  // MARK: Signing

  package func sign(
    _ request: SigningRequest, with key: SigningKey, at moment: SigningMoment
  ) throws(SigningFault) -> SignedRequest {
    try request.check()
    try request.checkEncoding(isForm: false)
    let region = try Self.scopePart(options.region, "region", as: "us-east-1")
    let service = try Self.scopePart(options.service, "service", as: "execute-api")
    var request = request
    // The X-Amz-Date field of the request, if it is a valid time, overrides the given time.
    let given = request.headers["X-Amz-Date"].flatMap { CivilTime(basic: $0) }
    let time = given ?? CivilTime(seconds: moment.now)
    guard (0...9999).contains(time.year) else {
      throw SigningFault(.malformedSignature, "the time \(moment.now) has a year that sigv4 cannot write")
    }
    let parts = Parts(
      date: time.basic, region: region, service: service, isPresigned: options.presignSeconds != nil)
    return parts.isPresigned
      ? try presign(&request, key, parts) : try signHeader(&request, key, parts)
  }

  /// Signs in the header form.
  private func signHeader(
    _ request: inout SigningRequest, _ key: SigningKey, _ parts: Parts
  ) throws(SigningFault) -> SignedRequest {
    var added = [HeaderField("X-Amz-Date", parts.date)]
    if options.signBody {
      added.append(HeaderField("X-Amz-Content-Sha256", Hex.text(try request.bodySHA256())))
    }
    let token = key.sessionToken.map { HeaderField("X-Amz-Security-Token", $0.text) }
    if let token, !options.omitSessionToken { added.append(token) }
    for field in added { request.headers[field.name] = field.value }
    let claim = Claim(
      keyID: key.id, covered: try Self.names(request), signature: [], parts: .sigV4(parts))
    let strings = try strings(claim, request, [])
    let signature = Hex.text(try code(of: strings.toSign, parts, key))
    if let token, options.omitSessionToken { added.append(token) }
    let credential =
      "\(Self.label) Credential=\(key.id)/\(parts.scope), SignedHeaders=\(claim.covered.joined(separator: ";")), "
      + "Signature=\(signature)"
    return SignedRequest(
      name, key.id, headers: added + [HeaderField("Authorization", credential)], signature: signature,
      strings: strings)
  }

  /// Makes a presigned URL.
  private func presign(
    _ request: inout SigningRequest, _ key: SigningKey, _ parts: Parts
  ) throws(SigningFault) -> SignedRequest {
    guard let seconds = options.presignSeconds, (1...604_800).contains(seconds) else {
      throw SigningFault(.malformedSignature, "a presigned URL can be valid for 1 to 604800 seconds")
    }
    request.headers["X-Amz-Date"] = nil
    let names = try Self.names(request)
    var added = [
      ("X-Amz-Algorithm", Self.label), ("X-Amz-Credential", "\(key.id)/\(parts.scope)"),
      ("X-Amz-Date", parts.date), ("X-Amz-Expires", String(seconds)),
      ("X-Amz-SignedHeaders", names.joined(separator: ";")),
    ]
    let token = key.sessionToken.map { ("X-Amz-Security-Token", $0.text) }
    if let token, !options.omitSessionToken { added.append(token) }
    request.query = Self.query(request.query, adding: added)
    let claim = Claim(
      keyID: key.id, covered: names, signature: [], parts: .sigV4(parts))
    let strings = try strings(claim, request, [])
    let signature = Hex.text(try code(of: strings.toSign, parts, key))
    var last = [("X-Amz-Signature", signature)]
    if let token, options.omitSessionToken { last.append(token) }
    return SignedRequest(
      name, key.id, headers: [], query: Self.query(request.query, adding: last), signature: signature,
      strings: strings)
  }

  /// Appends encoded parameters to a query.
  private static func query(_ query: String?, adding pairs: [(String, String)]) -> String {
    var out = Array((query ?? "").utf8)
    for (name, value) in pairs {
      if !out.isEmpty { out.append(0x26) }
      out.append(text: name)
      out.append(0x3d)
      PercentEncoding.append(value.utf8, to: &out)
    }
    return String(decoding: out, as: UTF8.self)
  }

  /// The names to sign, in ascending order: all fields of the request, and `host` even if there is no Host
  /// field. The Authorization field is not signed, because it carries the signature.
  ///
  /// - Throws: `malformedRequest` for more than 256 names.
  private static func names(_ request: SigningRequest) throws(SigningFault) -> [String] {
    var names = Set(request.headers.map { $0.name.loweredASCII })
    names.insert("host")
    names.remove("authorization")
    guard names.count <= Claim.mostCovered else {
      throw SigningFault(
        .malformedRequest,
        "sigv4 signs all fields; the request has \(names.count), but the limit is \(Claim.mostCovered)")
    }
    return names.sorted()
  }

  /// Checks the region or the service, which are parts of the scope. Slashes separate the parts of a scope,
  /// and a field or a query carries the scope, so only letters, digits and `-._~` are allowed.
  ///
  /// - Parameters:
  ///   - name: the name of the option, for the error.
  ///   - example: a valid value, for the error.
  /// - Throws: `malformedSignature` when the part is missing or has another character.
  private static func scopePart(
    _ value: String?, _ name: String, as example: String
  ) throws(SigningFault) -> String {
    guard let value, !value.isEmpty else {
      throw SigningFault(
        .malformedSignature,
        "sigv4 needs a \(name), and none is given; set the option \(name), for example \(example)")
    }
    guard let byte = value.utf8.first(where: { !ByteClass.isUnreserved($0) }) else { return value }
    throw SigningFault(
      .malformedSignature,
      "the \(name) \(value.debugDescription) contains \(byte.named); a \(name) of sigv4 can have only letters, digits and -._~, for example \(example)"
    )
  }

  /// The SHA-256 of a body in hexadecimal.
  private static func digest(_ body: [UInt8]) throws(SigningFault) -> String {
    Hex.text(try crypto { () throws(CryptoError) in try Digest.of(body, .sha256) })
  }

  // MARK: The strings

  package func strings(
    _ claim: Claim, _ request: SigningRequest, _ mistakes: Mistakes
  ) throws(SigningFault) -> SigningStrings {
    guard case .sigV4(let parts) = claim.parts else { return SigningStrings([]) }
    let canonical = mistakes.applied(toWhole: try canonical(claim, parts, request, mistakes))
    var out: [UInt8] = []
    out.append(text: "\(Self.label)\n\(parts.date)\n\(parts.scope)\n")
    out.append(hex: try crypto { () throws(CryptoError) in try Digest.of(canonical, .sha256) })
    return SigningStrings(out, canonical: canonical)
  }

  /// The canonical request, whose digest is in the string to sign.
  private func canonical(
    _ claim: Claim, _ parts: Parts, _ request: SigningRequest, _ mistakes: Mistakes
  ) throws(SigningFault) -> [UInt8] {
    var out: [UInt8] = []
    out.reserveCapacity(1024)
    out.append(text: mistakes.contains(.methodLowerCase) ? request.method.loweredASCII : request.method)
    out.append(0x0a)
    appendPath(request.path, parts, to: &out, mistakes)
    out.append(0x0a)
    if !mistakes.contains(.queryLeftOut) {
      var query = QueryParameters(request.query, plus: false)
      if parts.isPresigned {
        let token = options.omitSessionToken ? "X-Amz-Security-Token" : "X-Amz-Signature"
        query.pairs.removeAll {
          $0.key.elementsEqual("X-Amz-Signature".utf8) || $0.key.elementsEqual(token.utf8)
        }
      }
      query.append(
        to: &out, style: mistakes.style, order: mistakes.order(insteadOf: .byKeyAndValue),
        dropsEmpty: mistakes.contains(.emptiesDropped))
    }
    out.append(0x0a)
    for name in claim.covered {
      out.append(text: name)
      out.append(0x3a)
      let isThere = try request.appendValue(
        of: name, to: &out, joiner: ",", isCollapsed: true, allowsUTF8: true)
      if !isThere {
        guard name == "host" else {
          throw SigningFault(.missingField, "the field \(name) is to be signed but is missing")
        }
        request.appendAuthority(to: &out, keepsPort: mistakes.contains(.portKept))
      } else if name == "host", mistakes.contains(.portKept), !request.authority.contains(":") {
        out.append(text: request.scheme == .https ? ":443" : ":80")
      }
      out.append(0x0a)
    }
    out.append(0x0a)
    out.append(text: claim.covered.joined(separator: ";"))
    out.append(0x0a)
    out.append(text: try payload(parts, request))
    return out
  }

  /// The last line of the canonical request: the value of X-Amz-Content-Sha256 if the request has this field,
  /// `unsignedPayload` for a presigned URL of `s3`, otherwise the digest of the body.
  private func payload(_ parts: Parts, _ request: SigningRequest) throws(SigningFault) -> String {
    if let stated = try request.onlyValue(of: "X-Amz-Content-Sha256") { return stated }
    if parts.isPresigned, parts.service == "s3" { return Self.unsignedPayload }
    return Hex.text(try request.bodySHA256())
  }

  /// Appends the path. Each segment is encoded once for `s3`, and twice for every other service.
  private func appendPath(
    _ path: String, _ parts: Parts, to out: inout [UInt8], _ mistakes: Mistakes
  ) {
    let isObjectStore = parts.service == "s3"
    var isNormalised = options.normalizePath && !isObjectStore
    if mistakes.contains(.pathNotNormalised) { isNormalised = false }
    if mistakes.contains(.pathNormalised) { isNormalised = true }
    let path = isNormalised ? PathNormalisation.normalised(path) : path
    var style = PercentEncoding.Style.plain
    if mistakes.contains(.lowerCaseHex) { style.insert(.lowerHex) }
    // The path on the wire is already percent-encoded. Encoding it here encodes it twice, which all services
    // except s3 require.
    let isOnce =
      isObjectStore != (mistakes.contains(.pathEncodedOnce) || mistakes.contains(.pathEncodedTwice))
    for (index, segment) in path.utf8.split(separator: 0x2f, omittingEmptySubsequences: false).enumerated() {
      if index > 0 { out.append(0x2f) }
      if isOnce {
        PercentEncoding.append(PercentEncoding.decoded(segment), to: &out, style)
      } else {
        PercentEncoding.append(segment, to: &out, style)
      }
    }
  }

  /// Computes the MAC of a string under the key that is derived from secret, day, region and service.
  private func code(of string: [UInt8], _ parts: Parts, _ key: SigningKey) throws(SigningFault) -> [UInt8] {
    let mac = try Self.mac(parts, key)
    return try crypto { () throws(CryptoError) in try mac.code(of: string) }
  }

  /// The HMAC under the key that is derived from the secret for the scope of `parts`.
  private static func mac(_ parts: Parts, _ key: SigningKey) throws(SigningFault) -> HMAC {
    try key.scopedMAC(parts.scope) { (secret) throws(CryptoError) in
      try chain(
        secret, prefix: "AWS4", [String(parts.date.prefix(8)), parts.region, parts.service, terminator])
    }
  }

  /// Derives a key, and returns the HMAC-SHA256 under this key. The derivation begins with the key that
  /// consists of the prefix and the secret. The HMAC-SHA256 of each step under the key is the next key.
  private static func chain(
    _ secret: SecretBytes, prefix: String, _ steps: [String]
  ) throws(CryptoError) -> HMAC {
    var key = SecretBytes(count: prefix.utf8.count + secret.count) { memory in
      memory.copyBytes(from: prefix.utf8)
      secret.withUnsafeBytes {
        UnsafeMutableRawBufferPointer(rebasing: memory[prefix.utf8.count...]).copyMemory(from: $0)
      }
    }
    for step in steps {
      var code = try HMAC(.sha256, key: key).code(of: step)
      key = SecretBytes(copying: code)
      wipe(&code)
    }
    return try HMAC(.sha256, key: key)
  }

  // MARK: Verifying

  package func coverageFault(_ claim: Claim, _ request: SigningRequest) -> SigningFault? {
    guard case .sigV4(let parts) = claim.parts else { return nil }
    if let region = options.region, region != parts.region {
      return SigningFault(
        .notCovered, "the request is signed for the region \(parts.region), not for \(region)")
    }
    if let service = options.service, service != parts.service {
      return SigningFault(
        .notCovered, "the request is signed for the service \(parts.service), not for \(service)")
    }
    for field in request.headers {
      let name = field.name.loweredASCII
      guard name == "host" || name.hasPrefix("x-amz-"), !claim.covered.contains(name) else { continue }
      if name == "x-amz-security-token", options.omitSessionToken { continue }
      return SigningFault(
        .notCovered, "the field \(name) is not signed; AWS requires host and every x-amz- field")
    }
    if !claim.covered.contains("host") { return SigningFault(.notCovered, "the host is not signed") }
    for name in claim.covered where name != "host" && !request.headers.contains(name: name) {
      return SigningFault(.missingField, "the field \(name) is signed but is missing")
    }
    return nil
  }

  package func coverageNote(_ claim: Claim, _ request: SigningRequest) -> (text: String, isWeak: Bool) {
    guard case .sigV4(let parts) = claim.parts else { return ("", false) }
    let payload = (try? payload(parts, request)) ?? ""
    let isUnsigned = Hex.bytes(payload.utf8)?.count != 32
    // This holds for an empty body too: somebody may have removed the body of the request.
    return (isUnsigned ? "weak: the body is not signed (\(payload.prefix(80)))" : "", isUnsigned)
  }

  package func bodyFault(_ claim: Claim, _ request: SigningRequest) -> SigningFault? {
    if let stated = request.headers["X-Amz-Content-Sha256"], Hex.bytes(stated.utf8)?.count == 32 {
      do throws(SigningFault) {
        guard constantTimeEqual(Array(stated.utf8), Array(try Self.digest(request.body).utf8)) else {
          return SigningFault(.bodyMismatch, "X-Amz-Content-Sha256 differs from the digest of the body")
        }
      } catch { return error }
    }
    return ContentDigest.fault(in: request)
  }

  package func isValidSignature(
    _ claim: Claim, of string: [UInt8], by key: SigningKey
  ) throws(SigningFault) -> Bool {
    guard case .sigV4(let parts) = claim.parts else { return false }
    return constantTimeEqual(try code(of: string, parts, key), claim.signature)
  }

  package func expectedSignature(of string: [UInt8], _ claim: Claim, by key: SigningKey) -> String? {
    guard case .sigV4(let parts) = claim.parts else { return nil }
    return (try? code(of: string, parts, key)).map { Hex.text($0) }
  }

  // MARK: Diagnosis

  package var mistakes: [SignerMistake] { Self.mistakes }

  private static let mistakes: [SignerMistake] = [
    .plusForSpace, .lowerCaseHex, .emptiesDropped, .duplicateOrder, .paramsNotSorted, .encodedTwice,
    .notEncoded,
    .trailingNewline, .carriageReturns, .portKept, .pathNotNormalised, .pathNormalised, .pathEncodedOnce,
    .methodLowerCase, .queryLeftOut,
  ]

  package func keyCandidates(
    _ claim: Claim, _ request: SigningRequest, _ key: SigningKey
  ) -> [KeyCandidate] {
    guard case .sigV4(let parts) = claim.parts, let secret = try? key.secret() else { return [] }
    let steps = [String(parts.date.prefix(8)), parts.region, parts.service, Self.terminator]
    let wrong: [(SignerMistake, String, String, [String])] = [
      (.wrongSalt, "the secret was used without \"AWS4\" before it", "", steps),
      (.wrongSalt, "the key was derived without \"aws4_request\"", "AWS4", Array(steps.dropLast())),
      (.wrongScheme, "the secret itself was used as the key", "", []),
    ]
    return wrong.compactMap { mistake, detail, prefix, steps in
      guard let mac = try? Self.chain(secret, prefix: prefix, steps) else { return nil }
      return KeyCandidate(mistake: mistake, detail: detail) { string throws(SigningFault) in
        try crypto { () throws(CryptoError) in try mac.isCode(claim.signature, of: string.span) }
      }
    }
  }
}

extension SecretBytes {
  /// The bytes as a text, which is not wiped. Use it only for the session token: requests carry it in clear.
  var text: String { withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }
}
