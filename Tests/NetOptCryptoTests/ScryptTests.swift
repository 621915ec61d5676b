import NetOptCrypto
import Testing

@Suite struct ScryptTests {
  /// The first three vectors of RFC 7914, section 12.
  @Test("derived keys equal the vectors of RFC 7914")
  func publishedVectors() throws {
    // The password, the salt, the parameters, and the derived key in hexadecimal.
    let vectors: [(String, String, Scrypt, String)] = [
      (
        "", "", Scrypt(cost: 16, blockSize: 1, parallelism: 1),
        """
        77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442
        fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906
        """
      ),
      (
        "password", "NaCl", Scrypt(cost: 1024, blockSize: 8, parallelism: 16),
        """
        fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162
        2eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640
        """
      ),
      (
        "pleaseletmein", "SodiumChloride", Scrypt(cost: 16384, blockSize: 8, parallelism: 1),
        """
        7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2
        d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887
        """
      ),
    ]
    for (password, salt, scrypt, key) in vectors {
      let derived = try scrypt.key(
        from: SecretBytes(copying: Array(password.utf8)), salt: Array(salt.utf8), length: 64,
        memoryLimit: 64 << 20)
      #expect(derived == SecretBytes(copying: hex(key)))
    }
  }

  @Test("invalid costs, block sizes and parallelism are refused")
  func invalidParameters() {
    for scrypt in [
      Scrypt(cost: 0, blockSize: 8, parallelism: 1), Scrypt(cost: 1, blockSize: 8, parallelism: 1),
      Scrypt(cost: 1000, blockSize: 8, parallelism: 1), Scrypt(cost: 1024, blockSize: 0, parallelism: 1),
      Scrypt(cost: 1024, blockSize: 8, parallelism: 0),
    ] {
      let error = #expect(throws: CryptoError.self) {
        try scrypt.key(
          from: SecretBytes(copying: [1]), salt: [], length: 32, memoryLimit: .max)
      }
      #expect(error?.reason == "its parameters are invalid")
    }
  }

  @Test("parameters that need more memory than the limit are refused")
  func memoryLimit() {
    let large = Scrypt(cost: 1 << 20, blockSize: 8, parallelism: 1)
    let error = #expect(throws: CryptoError.self) {
      try large.key(from: SecretBytes(copying: [1]), salt: [], length: 32, memoryLimit: 1 << 20)
    }
    #expect(error?.reason == "it needs 1024 MiB of memory, but the limit is 1 MiB")
    // The needed memory does not fit in 64 bits.
    #expect(Scrypt(cost: 1 << 63, blockSize: .max, parallelism: .max).memory == .max)
  }
}
