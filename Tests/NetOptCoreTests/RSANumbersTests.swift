import NetOptCore
import Testing

/// The limits of the numbers in RSA keys.
@Suite struct RSANumbersTests {
  /// Whether a key is usable whose numbers have these sizes in bits: the modulus, the exponents, and three
  /// for each prime (the prime, its exponent and its coefficient).
  private func isUsable(_ n: Int32, _ e: Int32, _ d: Int32, _ primes: [(Int32, Int32, Int32)]) -> Bool {
    var numbers = ["n": n, "e": e, "d": d]
    for (index, prime) in primes.enumerated() {
      numbers["rsa-factor\(index + 1)"] = prime.0
      numbers["rsa-exponent\(index + 1)"] = prime.1
      numbers["rsa-coefficient\(index + 1)"] = prime.2
    }
    return RSANumbers.areUsable(most: 4096) { numbers[$0] }
  }

  @Test("keys with two and more primes are usable, also with primes of different sizes")
  func usable() {
    #expect(isUsable(2048, 17, 2046, [(1024, 1024, 1023), (1024, 1020, 0)]))
    #expect(isUsable(4096, 256, 4096, [(3000, 2999, 1090), (1097, 1096, 0)]))
    #expect(isUsable(3072, 17, 3071, [(1024, 1023, 1022), (1024, 1024, 1024), (1024, 1024, 1024)]))
    #expect(isUsable(2048, 17, 2047, []), "the primes may be missing")
    #expect(RSANumbers.areUsable(most: 4096) { _ in nil }, "keys of other types have no such numbers")
  }

  @Test("keys with numbers that no valid key of the size has are not usable")
  func unusable() {
    let half: (Int32, Int32, Int32) = (1024, 1024, 1024)
    #expect(!isUsable(4097, 17, 2048, [half, half]))
    #expect(!isUsable(2048, 257, 2048, [half, half]))
    #expect(!isUsable(2048, 17, 2049, [half, half]))
    #expect(!isUsable(2048, 17, 2048, [half, half, half]))
    #expect(!isUsable(2048, 17, 2048, [half, (1024, 1025, 0)]))
    #expect(!isUsable(2048, 17, 2048, [(1024, 1024, 1025), half]))
  }
}
