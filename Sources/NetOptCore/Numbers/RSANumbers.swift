/// The numbers of an RSA key (RFC 8017, section 3). The time of a signature grows with the number of primes
/// and with the length of each number, and a damaged or crafted key may have any of them.
package enum RSANumbers {
  /// The maximum length of the public exponent in bits (FIPS 186-5, section A.1.1). libcrypto uses it for
  /// signatures too.
  private static let longestExponent: Int32 = 256

  /// The numbers of the primes in libcrypto's names.
  private static let primes = 1...10

  /// Whether a signature with the key takes no longer than with a valid key whose modulus has `most` bits.
  ///
  /// - Parameters:
  ///   - most: the maximum length of the modulus in bits.
  ///   - bits: returns the length of a number in bits, by libcrypto's name (EVP_PKEY-RSA(7)); `nil` if the
  ///     key does not have it.
  package static func areUsable(most: Int32, bits: (String) -> Int32?) -> Bool {
    guard let modulus = bits("n") else { return true }
    guard modulus <= most, bits("e") ?? 0 <= longestExponent, bits("d") ?? 0 <= modulus else { return false }
    // The product of the primes is the modulus. Each other number is smaller than a prime.
    let factors = primes.map { bits("rsa-factor\($0)") ?? 0 }
    let longest = factors.max() ?? 0
    return factors.reduce(0, +) <= modulus + Int32(factors.count { $0 > 0 })
      && primes.allSatisfy { number in
        ["rsa-exponent\(number)", "rsa-coefficient\(number)"].allSatisfy { bits($0) ?? 0 <= longest }
      }
  }
}
