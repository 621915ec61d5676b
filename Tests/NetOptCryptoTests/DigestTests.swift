import NetOptCrypto
import Testing

@Suite struct DigestTests {
  /// The algorithm, the message, and the digest in hexadecimal. The sources are RFC 1321, appendix A.5 (MD5),
  /// NIST's examples for FIPS 180-4 (SHA-2), and RFC 7693, appendix A (BLAKE2b of `abc`).
  private static let vectors: [(DigestAlgorithm, String, String)] = [
    (.md5, "", "d41d8cd98f00b204e9800998ecf8427e"),
    (.md5, "abc", "900150983cd24fb0d6963f7d28e17f72"),
    (.md5, "message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
    (.sha256, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    (.sha256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (
      .sha256, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ),
    (
      .sha512, "abc",
      """
      ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a
      2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f
      """
    ),
    (
      .sha512,
      "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
      """
      8e959b75dae313da8cf4f72814fc143f8f7779c6eb9f7fa17299aeadb6889018
      501d289e4900f7e4331b99dec4b5433ac7d329eeb6dd26545e96e55b874be909
      """
    ),
    (
      .blake2b512, "",
      """
      786a02f742015903c6c6fd852552d272912f4740e15847618a86e217f71f5419
      d25e1031afee585313896444934eb04b903a685b1448b755d56f701afe9be2ce
      """
    ),
    (
      .blake2b512, "abc",
      """
      ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1
      7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923
      """
    ),
  ]

  @Test("digests equal the published vectors, for whole messages and single bytes", arguments: vectors)
  func publishedVectors(algorithm: DigestAlgorithm, message: String, digest: String) throws {
    #expect(try Digest.of(message, algorithm) == hex(digest))
    #expect(try Digest.of(Array(message.utf8), algorithm) == hex(digest))
    var whole = try Digest(algorithm)
    whole.update(message)
    #expect(try whole.finish() == hex(digest))
    var pieces = try Digest(algorithm)
    for byte in message.utf8 { pieces.update([byte]) }
    #expect(try pieces.finish() == hex(digest))
    #expect(hex(digest).count == algorithm.length)
  }

  @Test("one digest value digests several messages in turn", arguments: DigestAlgorithm.allCases)
  func reuse(algorithm: DigestAlgorithm) throws {
    var digest = try Digest(algorithm)
    digest.update("the first message")
    let first = try digest.finish()
    #expect(try digest.finish() == Digest.of("", algorithm))
    digest.update("the second ")
    digest.update("message")
    #expect(try digest.finish() == Digest.of("the second message", algorithm))
    digest.update("the first message")
    #expect(try digest.finish() == first)
  }

  @Test("an unfinished digest does not affect other digests", arguments: DigestAlgorithm.allCases)
  func unfinished(algorithm: DigestAlgorithm) throws {
    let expected = try Digest.of("a message", algorithm)
    for _ in 0..<20 {
      // A digest that is never finished.
      var left = try Digest(algorithm)
      left.update("nobody asks for the digest of this one")
      var other = try Digest(algorithm)
      other.update("a mess")
      #expect(try Digest.of("a message", algorithm) == expected)
      other.update("age")
      #expect(try other.finish() == expected)
      left.update(", nor of the rest")
    }
    #expect(try Digest.of("a message", algorithm) == expected)
  }

  @Test("concurrent tasks get the digests of their own messages")
  func concurrency() async throws {
    let expected = try (0..<64).map { try Digest.of("message \($0)", .sha256) }
    try await withThrowingTaskGroup { group in
      for number in expected.indices {
        group.addTask {
          for _ in 0..<200 {
            let digest = try Digest.of("message \(number)", .sha256)
            #expect(digest == expected[number])
          }
        }
      }
      try await group.waitForAll()
    }
  }

  @Test("the SHA-256 of a million letters equals the published vector")
  func millionLetters() throws {
    var digest = try Digest(.sha256)
    let piece = [UInt8](repeating: UInt8(ascii: "a"), count: 1000)
    for _ in 0..<1000 { digest.update(piece) }
    #expect(
      try digest.finish() == hex("cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"))
  }
}
