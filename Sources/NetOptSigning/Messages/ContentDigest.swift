public import NetOptCore
import NetOptCrypto

/// The header field Content-Digest (RFC 9530). It contains digests of the body as it is sent: content coding
/// is applied to the body first.
public enum ContentDigest {
  /// The digest algorithms that RFC 9530, section 7.2, registers as active. netopt ignores digests of all
  /// other algorithms.
  public enum Algorithm: String, Hashable, Sendable, CaseIterable {
    /// SHA-256.
    case sha256 = "sha-256"
    /// SHA-512.
    case sha512 = "sha-512"

    /// The algorithm in the form that `Digest` takes.
    var digest: DigestAlgorithm { self == .sha256 ? .sha256 : .sha512 }
  }

  /// Makes the Content-Digest field for a body.
  ///
  /// - Throws: `libraryFailed` when libcrypto cannot compute the digest.
  public static func field(
    of body: [UInt8], _ algorithm: Algorithm = .sha256
  ) throws(NetOptError) -> HeaderField {
    do {
      let digest = try crypto { () throws(CryptoError) in try Digest.of(body, algorithm.digest) }
      return HeaderField("Content-Digest", value(algorithm, digest))
    } catch {
      throw NetOptError(.libraryFailed, phase: .sign, error.detail)
    }
  }

  /// Makes the Content-Digest field for the body of a request, with SHA-256.
  static func field(of request: SigningRequest) throws(SigningFault) -> HeaderField {
    HeaderField("Content-Digest", value(.sha256, try request.bodySHA256()))
  }

  /// The value of a Content-Digest field with one digest: `sha-256=:BASE64:`.
  static func value(_ algorithm: Algorithm, _ digest: [UInt8]) -> String {
    "\(algorithm.rawValue)=:\(Base64.text(digest)):"
  }

  /// Compares the Content-Digest field of a request with the body. Returns the fault; `nil` if every known
  /// digest matches, or if the request has no such field.
  ///
  /// The function ignores digests of unknown algorithms. A field with only such digests is a fault, because
  /// netopt cannot check the body.
  static func fault(in request: SigningRequest) -> SigningFault? {
    guard request.hasField("Content-Digest"), let text = request.headers["Content-Digest"] else { return nil }
    let dictionary: StructuredDictionary
    do { dictionary = try StructuredFieldParser.dictionary(text.utf8) } catch {
      return SigningFault(.malformedRequest, "Content-Digest is not a dictionary: \(error.text)")
    }
    var known = 0
    for entry in dictionary.entries {
      guard let algorithm = Algorithm(rawValue: entry.key) else { continue }
      guard case .item(let item) = entry.value, case .bytes(let digest) = item.value else {
        return SigningFault(.malformedRequest, "\(entry.key) in Content-Digest is not a byte sequence")
      }
      do throws(CryptoError) {
        guard constantTimeEqual(try Digest.of(request.body, algorithm.digest), digest) else {
          return SigningFault(
            .bodyMismatch, "the \(entry.key) in Content-Digest differs from that of the body")
        }
      } catch {
        return SigningFault(.keyUnavailable, error.description)
      }
      known += 1
    }
    return known > 0
      ? nil
      : SigningFault(
        .bodyMismatch, "Content-Digest has neither sha-256 nor sha-512, so netopt cannot check the body")
  }
}
