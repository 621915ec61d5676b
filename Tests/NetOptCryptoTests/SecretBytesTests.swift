import NetOptCrypto
import Testing

@Suite struct SecretBytesTests {
  @Test("a secret returns the bytes from which it was made")
  func content() {
    let secret = SecretBytes(copying: [1, 2, 3, 4])
    #expect(secret.count == 4)
    #expect(secret.withUnsafeBytes { Array($0) } == [1, 2, 3, 4])
    #expect(secret.withSpan { $0[2] } == 3)
    #expect(secret.part(1..<3) == SecretBytes(copying: [2, 3]))
    #expect(SecretBytes(copying: []).count == 0)
  }

  @Test("secrets are equal if their bytes are equal")
  func comparison() {
    #expect(SecretBytes(copying: [1, 2]) == SecretBytes(copying: [1, 2]))
    #expect(SecretBytes(copying: [1, 2]) != SecretBytes(copying: [1, 3]))
    #expect(SecretBytes(copying: [1, 2]) != SecretBytes(copying: [1, 2, 3]))
    #expect(constantTimeEqual([], []))
    #expect(constantTimeEqual([7], [7]))
    #expect(!constantTimeEqual([7], []))
  }

  @Test("descriptions and dumps show only the number of bytes")
  func hiddenBytes() {
    let secret = SecretBytes(copying: Array("hunter2".utf8))
    var dumped = ""
    dump([secret], to: &dumped)
    for text in ["\(secret)", String(reflecting: secret), dumped, "\(Optional(secret) as Any)"] {
      #expect(text.contains("SecretBytes(7)"))
      // 104 is the value of the first byte, "h".
      #expect(!text.contains("hunter2") && !text.contains("104"))
    }
  }

  @Test("an error thrown while a secret is filled reaches the caller")
  func failure() {
    struct Refused: Error {}
    #expect(throws: Refused.self) {
      try SecretBytes(count: 8) { (memory) throws(Refused) in
        memory[0] = 1
        throw Refused()
      }
    }
  }

  @Test("random bytes differ each time and have the requested count")
  func randomBytesDiffer() throws {
    let draws = try (0..<16).map { _ in try randomBytes(16) }
    #expect(Set(draws).count == 16)
    #expect(draws.allSatisfy { $0.count == 16 })
    #expect(try SecretBytes(randomCount: 32) != SecretBytes(randomCount: 32))
    #expect(try randomBytes(0).isEmpty)
  }
}
