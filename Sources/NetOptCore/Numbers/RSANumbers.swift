/// The numbers of an RSA key (RFC 8017, section 3). The time of a signature grows with the length of each
/// number, and a damaged or crafted key may have numbers of any length.
package enum RSANumbers {
  /// The maximum length of the public exponent in bits (FIPS 186-5, section A.1.1). libcrypto uses it for
  /// signatures too.
  private static let longestExponent: Int32 = 256

  /// The numbers by libcrypto's names (EVP_PKEY-RSA(7)), with those of keys of up to ten primes.
  private static let names: [String] =
    ["n", "e", "d"]
    + (1...10).flatMap { ["rsa-factor\($0)", "rsa-exponent\($0)", "rsa-coefficient\($0)"] }

  /// Whether no number is too long.
  ///
  /// - Parameters:
  ///   - most: the maximum length of each number in bits; the public exponent has a limit of its own.
  ///   - bits: returns the length of a number in bits; `nil` if the key does not have it.
  package static func areUsable(most: Int32, bits: (String) -> Int32?) -> Bool {
    names.allSatisfy { name in bits(name).map { $0 <= (name == "e" ? longestExponent : most) } ?? true }
  }
}
