import FoundationEssentials
package import NetOptCore
import NetOptCrypto

/// A minisign signature of a file and of a trusted comment.
package struct MinisignSignature: Hashable, Sendable {
  /// Which data the Ed25519 signature signs.
  package enum Algorithm: String, Sendable {
    /// The file itself: the default of minisign before version 0.10, and of `minisign -l`.
    case legacy
    /// The BLAKE2b-512 digest of the file.
    case prehashed
  }

  /// Which data the Ed25519 signature signs.
  package let algorithm: Algorithm
  /// The id of the key that made the signature, 8 bytes.
  let keyID: [UInt8]
  /// The Ed25519 signature of the file or of its digest, 64 bytes.
  let signature: [UInt8]
  /// The comment in the first line, which no signature covers.
  let untrustedComment: String
  /// The signer's comment on the file. `commentSignature` signs it, so it is trustworthy after `verify` has
  /// succeeded.
  package let trustedComment: String
  /// The Ed25519 signature of the bytes of `signature` followed by the trusted comment, 64 bytes.
  let commentSignature: [UInt8]

  /// The id of the key that made the signature, as minisign shows it.
  package var keyName: String { MinisignText.name(ofKey: keyID) }

  /// Reads a signature file. Does not verify the signature.
  ///
  /// - Parameter file: the name of the signature file in messages.
  /// - Throws: `invalidSignature`, with the line and the broken rule.
  package init(_ bytes: [UInt8], file: String) throws(NetOptError) {
    let text = try MinisignText(bytes, file: file, code: .invalidSignature)
    try text.expect(4, "a minisign signature")
    untrustedComment = try text.comment(0, after: MinisignText.untrusted)
    let body = try text.base64(1, count: 74, "a minisign signature")
    trustedComment = try text.comment(2, after: MinisignText.trusted)
    commentSignature = try text.base64(3, count: 64, "the signature of the comment")
    if body.starts(with: MinisignText.prehashed) {
      algorithm = .prehashed
    } else if body.starts(with: MinisignText.ed25519) {
      algorithm = .legacy
    } else {
      throw text.fault("line 2 names an algorithm that minisign does not support")
    }
    keyID = Array(body[2..<10])
    signature = Array(body[10...])
  }

  init(
    _ algorithm: Algorithm, keyID: [UInt8], signature: [UInt8], untrustedComment: String,
    trustedComment: String, commentSignature: [UInt8]
  ) {
    self.algorithm = algorithm
    self.keyID = keyID
    self.signature = signature
    self.untrustedComment = untrustedComment
    self.trustedComment = trustedComment
    self.commentSignature = commentSignature
  }

  /// The content of the signature file.
  package var text: String {
    let mark = algorithm == .legacy ? MinisignText.ed25519 : MinisignText.prehashed
    return """
      \(MinisignText.untrusted)\(untrustedComment)
      \(Data(mark + keyID + signature).base64EncodedString())
      \(MinisignText.trusted)\(trustedComment)
      \(Data(commentSignature).base64EncodedString())

      """
  }

  /// Verifies the signature of a file, and then the signature of the trusted comment.
  ///
  /// - Parameters:
  ///   - content: the bytes of the signed file.
  ///   - file: the name of the signed file in messages.
  ///   - keys: the trusted keys. One of them must have the id that the signature names.
  /// - Returns: the key that made the signature.
  /// - Throws: `invalidSignature`, with the reason.
  @discardableResult
  package func verify(
    _ content: [UInt8], of file: String, by keys: [MinisignPublicKey]
  ) throws(NetOptError) -> MinisignPublicKey {
    let candidates = keys.filter { $0.idBytes == keyID }
    guard !candidates.isEmpty else {
      let trusted = keys.map(\.id).joined(separator: ", ")
      throw NetOptError(
        .invalidSignature, phase: .list,
        "\(file) is signed with the key \(keyName), which is not trusted; trusted: \(trusted)")
    }
    let signer = try withListErrors {
      let message = try algorithm == .prehashed ? Digest.of(content, .blake2b512) : content
      return try candidates.first { candidate in
        let key = try Ed25519.PublicKey(candidate.key)
        guard try key.isValidSignature(signature, of: message) else { return false }
        guard try key.isValidSignature(commentSignature, of: signature + Array(trustedComment.utf8)) else {
          throw NetOptError(
            .invalidSignature, phase: .list,
            "the trusted comment in the signature of \(file) was changed; sign the file again")
        }
        return true
      }
    }
    if let signer { return signer }
    throw NetOptError(
      .invalidSignature, phase: .list,
      "\(file) does not match its signature by the key \(keyName): the file or its signature was changed")
  }
}
