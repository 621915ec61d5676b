import NetOptCrypto
import Testing

@Suite struct HMACTests {
  /// A key, a message, and the published codes.
  struct Vector: Sendable {
    let key: [UInt8]
    let message: [UInt8]
    /// The code of HMAC with SHA-256, in hexadecimal.
    let sha256: String
    /// The code of HMAC with SHA-512, in hexadecimal.
    let sha512: String
  }

  /// The vectors of RFC 4231, sections 4.2, 4.3 and 4.7.
  private static let vectors = [
    Vector(
      key: [UInt8](repeating: 0x0b, count: 20), message: Array("Hi There".utf8),
      sha256: "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
      sha512: """
        87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cde
        daa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854
        """),
    Vector(
      key: Array("Jefe".utf8), message: Array("what do ya want for nothing?".utf8),
      sha256: "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
      sha512: """
        164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554
        9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737
        """),
    Vector(
      key: [UInt8](repeating: 0xaa, count: 131),
      message: Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
      sha256: "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
      sha512: """
        80b24263c7c1a3ebb71493c1dd7be8b49b46d1f41b4aeec1121b013783f8f352
        6b56d037e05f2598bd0fd2215d6a1e5295e64f73f63f0aec8b915a985d786598
        """),
  ]

  @Test("codes equal the vectors of RFC 4231, and other codes are refused", arguments: vectors)
  func publishedVectors(vector: Vector) throws {
    for (algorithm, code) in [(DigestAlgorithm.sha256, vector.sha256), (.sha512, vector.sha512)] {
      let hmac = try HMAC(algorithm, key: SecretBytes(copying: vector.key))
      // The first computation copies the context with the prepared key. The others use this copy again.
      for _ in 0..<3 { #expect(try hmac.code(of: vector.message) == hex(code)) }
      #expect(try hmac.isCode(hex(code), of: vector.message.span))
      #expect(try !hmac.isCode(hex(code).dropLast(), of: vector.message.span))
      #expect(try !hmac.isCode(hex(code), of: (vector.message + [0]).span))
    }
  }

  @Test("an empty key gives the right code of an empty message")
  func emptyKey() throws {
    let hmac = try HMAC(.sha256, key: SecretBytes(copying: []))
    let code = hex("b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad")
    #expect(try hmac.code(of: "") == code)
    #expect(try hmac.code(of: []) == code)
  }

  @Test("concurrent tasks that share a key get the right codes")
  func concurrency() async throws {
    let hmac = try HMAC(.sha256, key: SecretBytes(copying: Array("a key".utf8)))
    let codes = try (0..<64).map { try hmac.code(of: "message \($0)") }
    #expect(Set(codes).count == 64)
    try await withThrowingTaskGroup(of: Bool.self) { group in
      // Each task computes the codes in another order.
      for task in 0..<8 {
        group.addTask {
          try (0..<500).allSatisfy {
            try hmac.code(of: "message \(($0 + task) % 64)") == codes[($0 + task) % 64]
          }
        }
      }
      for try await isRight in group { #expect(isRight) }
    }
  }

  @Test("description and dump do not show the key")
  func hiddenKey() throws {
    let hmac = try HMAC(.sha256, key: SecretBytes(copying: Array("a key".utf8)))
    #expect("\(hmac)" == "HMAC(SHA-256)")
    var dumped = ""
    dump(hmac, to: &dumped)
    #expect(dumped == "- HMAC(SHA-256) #0\n")
  }
}
