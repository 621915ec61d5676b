import CCrypto

/// The parameters of scrypt (RFC 7914), which derives a key from a password: EVP_PBE_scrypt(3). scrypt takes
/// much time and memory by design, so that guessing passwords is expensive.
package struct Scrypt: Hashable, Sendable {
  /// The cost N, a power of two greater than 1.
  package let cost: UInt64
  /// The block size r, in units of 128 bytes.
  package let blockSize: UInt64
  /// The parallelisation parameter p.
  package let parallelism: UInt64

  /// Makes parameters without a check. `key(from:salt:length:memoryLimit:)` checks them.
  package init(cost: UInt64, blockSize: UInt64, parallelism: UInt64) {
    self.cost = cost
    self.blockSize = blockSize
    self.parallelism = parallelism
  }

  /// The memory in bytes that scrypt needs with these parameters; `UInt64.max` on overflow.
  package var memory: UInt64 {
    let (blocks, first) = cost.addingReportingOverflow(parallelism)
    let (all, second) = blocks.addingReportingOverflow(2)
    let (bytes, third) = all.multipliedReportingOverflow(by: 128)
    let (memory, fourth) = bytes.multipliedReportingOverflow(by: blockSize)
    return first || second || third || fourth ? .max : memory
  }

  /// Derives a key. Blocks the thread until the key is derived.
  ///
  /// - Parameters:
  ///   - limit: the maximum memory in bytes that scrypt may use.
  ///   - length: the length of the key in bytes.
  /// - Throws: when the parameters are invalid or need more memory than the limit, or libcrypto fails.
  package func key(
    from password: SecretBytes, salt: [UInt8], length: Int, memoryLimit limit: UInt64
  ) throws(CryptoError) -> SecretBytes {
    let operation = "deriving a key from the password (scrypt)"
    guard cost > 1, cost & (cost - 1) == 0, blockSize > 0, parallelism > 0, length > 0 else {
      throw CryptoError(operation, "its parameters are invalid")
    }
    guard memory <= limit else {
      throw CryptoError(
        operation, "it needs \(memory >> 20) MiB of memory, but the limit is \(limit >> 20) MiB")
    }
    return try SecretBytes(count: length) { (key) throws(CryptoError) in
      let start = key.bindMemory(to: UInt8.self).baseAddress
      let isDone = password.withUnsafeBytes { password in
        // An empty password has no address, and libcrypto would take a null address as a request to check the
        // parameters.
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
