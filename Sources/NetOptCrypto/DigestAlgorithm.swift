import CCrypto

/// The supported digests.
package enum DigestAlgorithm: String, CaseIterable, Sendable {
  /// MD5 (RFC 1321). Not collision-resistant: an attacker can make two texts with the same digest.
  case md5 = "MD5"
  /// SHA-1 (FIPS 180-4). Not collision-resistant: an attacker can make two texts with the same digest.
  case sha1 = "SHA-1"
  /// SHA-256 (FIPS 180-4).
  case sha256 = "SHA-256"
  /// SHA-512 (FIPS 180-4).
  case sha512 = "SHA-512"
  /// BLAKE2b with digests of 64 bytes (RFC 7693).
  case blake2b512 = "BLAKE2b-512"

  /// The length of a digest in bytes.
  package var length: Int {
    switch self {
    case .md5: 16
    case .sha1: 20
    case .sha256: 32
    case .sha512, .blake2b512: 64
    }
  }

  /// libcrypto's implementation of the digest, with its idle contexts.
  ///
  /// - Throws: when this machine's libcrypto lacks the digest. MD5 is missing where only FIPS algorithms are
  ///   allowed.
  var fetched: FetchedDigest {
    get throws(CryptoError) {
      let fetched =
        switch self {
        case .md5: FetchedDigest.md5
        case .sha1: FetchedDigest.sha1
        case .sha256: FetchedDigest.sha256
        case .sha512: FetchedDigest.sha512
        case .blake2b512: FetchedDigest.blake2b512
        }
      guard fetched.handle != nil else {
        throw CryptoError("the \(rawValue) digest", "the libcrypto of this machine does not offer it")
      }
      return fetched
    }
  }
}

/// An implementation of a digest, which libcrypto searches by name: EVP_MD_fetch(3). The search costs more
/// than hashing a short text, so each implementation is fetched once and kept for the life of the process.
final class FetchedDigest: @unchecked Sendable {
  // Unchecked: an EVP_MD does not change, and libcrypto lets any thread use it.
  /// The `EVP_MD`; `nil` if this machine's libcrypto lacks the digest.
  let handle: OpaquePointer?
  /// Contexts that are initialised for this digest and hold no message.
  let idleContexts = IdleContexts<Digest.Context>()

  private init(_ name: String) {
    handle = EVP_MD_fetch(nil, name, nil)
    // The caller that needs the digest reports that it is missing.
    if handle == nil { ERR_clear_error() }
  }

  static let md5 = FetchedDigest("MD5")
  static let sha1 = FetchedDigest("SHA1")
  static let sha256 = FetchedDigest("SHA2-256")
  static let sha512 = FetchedDigest("SHA2-512")
  static let blake2b512 = FetchedDigest("BLAKE2B-512")
}
