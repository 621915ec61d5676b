import NetOptCore
import NetOptCrypto

/// The scheme `salted-md5`, which many apps use. It is weak: docs/signing.md lists what the signature does
/// not protect.
package struct SaltedMD5: SigningScheme {
  /// The hash functions that implementations of the scheme use.
  package enum Hash: String, CaseIterable, Sendable {
    case md5, sha1, sha256

    var algorithm: DigestAlgorithm {
      switch self {
      case .md5: .md5
      case .sha1: .sha1
      case .sha256: .sha256
      }
    }
  }

  /// The position of a text: before (`prefix`) or after (`suffix`) another text.
  package enum Position: String, CaseIterable, Sendable {
    case prefix, suffix
  }

  /// The choices in which implementations of the scheme differ. The defaults are the classic variant: MD5,
  /// two rounds, the secret first, and the salt last.
  package struct Options: Sendable {
    /// The API: the text that is hashed before the parameters. `nil` for the path without its leading slash.
    package var api: String?
    /// The hash function of all rounds.
    package var hash = Hash.md5
    /// The number of hash rounds, 1 to 1000. Round 1 hashes the secret, the API and the parameters. Each
    /// further round hashes the salt and the hexadecimal text of the previous hash.
    package var rounds = 2
    /// The position of the secret: before or after the API and the parameters.
    package var secret = Position.prefix
    /// The position of the salt: before or after the hash of the previous round.
    package var salt = Position.suffix
    /// Whether parameters with empty values are hashed too. If false, they are left out.
    package var keepEmpty = false
    /// Whether keys and values are percent-encoded before they are hashed.
    package var encode = false
    /// The names of the query parameters that carry key id and signature; `nil` if header fields carry them.
    package var parameters: (key: String, signature: String)?

    /// Makes the options of the classic variant.
    package init() {}
  }

  /// The field with the key id.
  static let keyField = "X-Netopt-Key"
  /// The field with the signature.
  static let signatureField = "X-Netopt-Sig"

  package let name = SchemeName.saltedMD5
  package let options: Options

  /// Makes the scheme.
  ///
  /// - Throws: `malformedRequest` when the number of rounds is not 1 to 1000.
  package init(_ options: Options = Options()) throws(SigningFault) {
    guard (1...1000).contains(options.rounds) else {
      throw SigningFault(.malformedRequest, "rounds must be a number from 1 to 1000")
    }
    self.options = options
  }

  /// Makes the classic variant with another hash function.
  private init(hash: Hash) {
    var options = Options()
    options.hash = hash
    self.options = options
  }

  /// The classic variant with SHA-256. Its signatures have 32 bytes, like those of `netopt1`. The diagnosis
  /// of an invalid `netopt1` signature tests whether the signer used this variant instead.
  static let sha256 = SaltedMD5(hash: .sha256)

  package func sign(
    _ request: SigningRequest, with key: SigningKey, at moment: SigningMoment
  ) throws(SigningFault) -> SignedRequest {
    try request.check()
    let string = parts(of: request, [])
    let signature = Hex.text(try code(of: string, by: key))
    if let names = options.parameters {
      var pieces: [UInt8] = []
      for (name, value) in [(names.key, key.id), (names.signature, signature)] {
        if request.query?.isEmpty == false || !pieces.isEmpty { pieces.append(0x26) }
        PercentEncoding.append(name.utf8, to: &pieces)
        pieces.append(0x3d)
        PercentEncoding.append(value.utf8, to: &pieces)
      }
      return SignedRequest(
        name, key.id, headers: [],
        query: (request.query ?? "") + String(decoding: pieces, as: UTF8.self), signature: signature,
        strings: SigningStrings(string))
    }
    return SignedRequest(
      name, key.id,
      headers: [HeaderField(Self.keyField, key.id), HeaderField(Self.signatureField, signature)],
      signature: signature, strings: SigningStrings(string))
  }

  /// Returns the text that is hashed together with the secret: the API, then the sorted parameters. With
  /// mistakes, returns the text as a signer that makes these mistakes builds it.
  func parts(of request: SigningRequest, _ mistakes: Mistakes) -> [UInt8] {
    var out: [UInt8] = []
    if let api = options.api { out.append(text: api) } else { out += request.path.utf8.dropFirst() }
    if mistakes.contains(.queryLeftOut) { return out }
    let own = [options.parameters?.key, options.parameters?.signature].compactMap {
      $0.map { Array($0.utf8) }
    }
    // For these two mistakes, the signer does the opposite of what the option says.
    let keepsEmpty = options.keepEmpty != mistakes.contains(.emptiesDropped)
    let isEncoded = options.encode != mistakes.contains(.encodedTwice)
    var pairs: [(text: [UInt8], key: [UInt8], index: Int)] = []
    for pair in QueryParameters(request.query, plus: true).pairs where !own.contains(pair.key) {
      if pair.value.isEmpty, !keepsEmpty { continue }
      var text: [UInt8] = []
      var style: PercentEncoding.Style = isEncoded ? .plain : .none
      if mistakes.contains(.plusForSpace) { style.insert(.plusForSpace) }
      if mistakes.contains(.lowerCaseHex) { style.insert(.lowerHex) }
      PercentEncoding.append(pair.key, to: &text, style)
      let key = text
      text.append(0x3d)
      PercentEncoding.append(pair.value, to: &text, style)
      pairs.append((text, key, pairs.count))
    }
    if mistakes.contains(.duplicateOrder) {
      pairs.sort { $0.key == $1.key ? $0.index < $1.index : less($0.key, $1.key) }
    } else if !mistakes.contains(.paramsNotSorted) {
      pairs.sort { less($0.text, $1.text) }
    }
    for (index, pair) in pairs.enumerated() {
      if index > 0 { out.append(0x26) }
      out += pair.text
    }
    return mistakes.applied(toWhole: out)
  }

  /// Computes the signature of a text that `parts` returned, with the secret and the salt of the key.
  func code(of string: [UInt8], by key: SigningKey) throws(SigningFault) -> [UInt8] {
    try code(of: string, try key.secret(), salt: key.salt)
  }

  /// Computes the signature of a text that `parts` returned, with any secret and salt.
  func code(of string: [UInt8], _ secret: SecretBytes, salt: String) throws(SigningFault) -> [UInt8] {
    try crypto { () throws(CryptoError) in
      var digest = try Digest(options.hash.algorithm)
      if options.secret == .suffix { digest.update(string) }
      secret.withSpan { digest.update($0) }
      if options.secret == .prefix { digest.update(string) }
      var code = try digest.finish()
      for _ in 1..<max(options.rounds, 1) {
        if options.salt == .prefix { digest.update(salt) }
        digest.update(Hex.text(code))
        if options.salt == .suffix { digest.update(salt) }
        code = try digest.finish()
      }
      return code
    }
  }

  package func claim(in request: SigningRequest) throws(SigningFault) -> Claim {
    var key: String?
    var signature: String?
    if let names = options.parameters {
      for pair in QueryParameters(request.query, plus: true).pairs {
        let value = String(decoding: pair.value, as: UTF8.self)
        let isKey = pair.key.elementsEqual(names.key.utf8)
        let isSignature = pair.key.elementsEqual(names.signature.utf8)
        guard !(isKey && key != nil), !(isSignature && signature != nil) else {
          throw SigningFault(
            .malformedSignature, "there are several \(isKey ? "key ids" : "signatures") in the query")
        }
        if isKey { key = value }
        if isSignature { signature = value }
      }
    } else {
      key = try request.onlyValue(of: Self.keyField)
      signature = try request.onlyValue(of: Self.signatureField)
    }
    guard let signature else {
      throw SigningFault(
        .noSignature, "there is no \(options.parameters?.signature ?? Self.signatureField)")
    }
    guard let bytes = Hex.bytes(ByteClass.trimmed(signature.utf8)), !bytes.isEmpty else {
      throw SigningFault(.malformedSignature, "the signature is not made of lower-case hexadecimal digits")
    }
    let id = key.map { String(Substring(ByteClass.trimmed($0.utf8))) }
    return Claim(keyID: id ?? "", signature: bytes)
  }

  package func coverageFault(_ claim: Claim, _ request: SigningRequest) -> SigningFault? { nil }

  package func coverageNote(_ claim: Claim, _ request: SigningRequest) -> (text: String, isWeak: Bool) {
    ("weak: method, host, fields, body and time are not signed, and the signature can be replayed", true)
  }

  package func strings(
    _ claim: Claim, _ request: SigningRequest, _ mistakes: Mistakes
  ) throws(SigningFault) -> SigningStrings {
    SigningStrings(parts(of: request, mistakes))
  }

  package func isValidSignature(
    _ claim: Claim, of string: [UInt8], by key: SigningKey
  ) throws(SigningFault) -> Bool {
    constantTimeEqual(try code(of: string, by: key), claim.signature)
  }

  package func expectedSignature(of string: [UInt8], _ claim: Claim, by key: SigningKey) -> String? {
    (try? code(of: string, by: key)).map { Hex.text($0) }
  }

  // MARK: Diagnosis

  package var mistakes: [SignerMistake] { Self.mistakes }

  private static let mistakes: [SignerMistake] = [
    .plusForSpace, .lowerCaseHex, .emptiesDropped, .duplicateOrder, .paramsNotSorted, .encodedTwice,
    .trailingNewline, .queryLeftOut,
  ]

  package func keyCandidates(
    _ claim: Claim, _ request: SigningRequest, _ key: SigningKey
  ) -> [KeyCandidate] {
    guard let secret = try? key.secret() else { return [] }
    var candidates: [KeyCandidate] = []
    func add(
      _ mistake: SignerMistake, _ detail: String, salt: String? = nil, _ change: (inout Options) -> Void
    ) {
      var options = options
      change(&options)
      guard let variant = try? SaltedMD5(options) else { return }
      let salt = salt ?? key.salt
      candidates.append(
        KeyCandidate(mistake: mistake, detail: detail) { string throws(SigningFault) in
          constantTimeEqual(try variant.code(of: string, secret, salt: salt), claim.signature)
        })
    }
    add(.wrongSalt, "no salt was used", salt: "") { _ in }
    add(.wrongSalt, "the salt is on the other side") { $0.salt = $0.salt == .prefix ? .suffix : .prefix }
    for hash in Hash.allCases where hash != options.hash {
      add(.wrongScheme, "the hash is \(hash.rawValue)") { $0.hash = hash }
    }
    for rounds in 1...4 where rounds != options.rounds {
      add(.wrongScheme, "it is hashed \(rounds) times") { $0.rounds = rounds }
    }
    add(.wrongScheme, "the secret is on the other side") {
      $0.secret = $0.secret == .prefix ? .suffix : .prefix
    }
    return candidates
  }
}
