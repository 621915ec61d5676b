import CCrypto

/// Overwrites bytes that were a secret (OPENSSL_cleanse(3)), and empties the array.
///
/// - Parameter bytes: must have no other owner; otherwise only a copy is overwritten.
package func wipe(_ bytes: inout [UInt8]) {
  bytes.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) }
  bytes = []
}
