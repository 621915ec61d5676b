import NetOptCore
import NetOptCrypto
import Testing

@Suite struct BLAKE2bTests {
  /// libcrypto can compute only digests of 64 bytes. `BLAKE2b` computes digests of other lengths with the
  /// same code.
  @Test("digests of 64 bytes equal those of libcrypto")
  func libcrypto() throws {
    var random = SplitMix64(seed: 7)
    for count in Array(0...300) + [1023, 1024, 1025, 100_000] {
      let message = (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      #expect(BLAKE2b.digest(of: message.span, length: 64) == (try Digest.of(message, .blake2b512)))
    }
  }

  /// The self-test of RFC 7693, appendix E: computes digests of several lengths for messages of several
  /// lengths, and compares the digest of all these digests with a known value. The RFC does the same with
  /// keys, which netopt does not support. The RFC's value covers both halves, so the value for the half
  /// without keys comes from Python's hashlib.
  @Test("digests of 20, 32, 48 and 64 bytes are those of RFC 7693")
  func otherLengths() {
    // Returns the message of a given length that the RFC defines (`selftest_seq`).
    func sequence(_ count: Int, _ seed: UInt32) -> [UInt8] {
      var a = 0xDEAD_4BAD &* seed
      var b: UInt32 = 1
      return (0..<count).map { _ in
        (a, b) = (b, a &+ b)
        return UInt8(b >> 24)
      }
    }
    var digests: [UInt8] = []
    for length in [20, 32, 48, 64] {
      for count in [0, 3, 128, 129, 255, 1024] {
        digests += BLAKE2b.digest(of: sequence(count, UInt32(count)).span, length: length)
      }
    }
    #expect(
      BLAKE2b.digest(of: digests.span, length: 32)
        == hex("681f345ad53c6360214ea500fd259edddbca775f605fad81b9b189d6d88e15c6"))
    #expect(
      BLAKE2b.digest(of: Array("abc".utf8).span, length: 32)
        == hex("bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319"))
  }
}
