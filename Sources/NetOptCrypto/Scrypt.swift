import CCrypto

/// scrypt (RFC 7914), which makes a key of a password and is meant to take time and memory: EVP_PBE_scrypt(3).
package struct Scrypt: Hashable, Sendable {
  /// The cost, a power of two greater than 1: N.
  package let cost: UInt64
  /// The size of a block in 128 bytes: r.
  package let blockSize: UInt64
  /// How often it is done: p.
  package let parallelism: UInt64

  /// Makes parameters. Whether they make sense is found out when a key is derived.
  package init(cost: UInt64, blockSize: UInt64, parallelism: UInt64) {
    self.cost = cost
    self.blockSize = blockSize
    self.parallelism = parallelism
  }

  /// The memory that is needed in bytes, saturating.
  package var memory: UInt64 {
    let (blocks, first) = cost.addingReportingOverflow(parallelism)
    let (all, second) = blocks.addingReportingOverflow(2)
    let (bytes, third) = all.multipliedReportingOverflow(by: 128)
    let (memory, fourth) = bytes.multipliedReportingOverflow(by: blockSize)
    return first || second || third || fourth ? .max : memory
  }

  /// Derives a key. It blocks the thread for as long as it takes.
  ///
  /// - Parameters:
  ///   - limit: the most memory in bytes that it may take.
  ///   - length: of the key in bytes.
  /// - Throws: for parameters that make no sense or need more memory than the limit, and when there is none.
  package func key(
    from password: SecretBytes, salt: [UInt8], length: Int, memoryLimit limit: UInt64
  ) throws(CryptoError) -> SecretBytes {
    let operation = "deriving a key from the password (scrypt)"
    guard cost > 1, cost & (cost - 1) == 0, blockSize > 0, parallelism > 0, length > 0 else {
      throw CryptoError(operation, "its parameters make no sense")
    }
    guard memory <= limit else {
      throw CryptoError(
        operation, "it needs \(memory >> 20) MiB of memory, and \(limit >> 20) MiB are allowed")
    }
    return try SecretBytes(count: length) { (key) throws(CryptoError) in
      let start = key.bindMemory(to: UInt8.self).baseAddress
      let isDone = password.withUnsafeBytes { password in
        // An empty password has no address, which libcrypto would take for a question about the parameters.
        var none: CChar = 0
        return withUnsafePointer(to: &none) { none in
          let text = password.count > 0 ? password.bindMemory(to: CChar.self).baseAddress : none
          return EVP_PBE_scrypt(
            text, password.count, salt, salt.count, cost, blockSize, parallelism, limit, start, length) == 1
        }
      }
      guard isDone else { throw CryptoError(failed: operation) }
    }
  }
}
