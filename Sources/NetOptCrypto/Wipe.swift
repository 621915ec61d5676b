import CCrypto

/// Overwrites bytes that were a secret (OPENSSL_cleanse(3)), and leaves none.
///
/// - Parameter bytes: has to have no other owner; of a shared array a copy would be overwritten.
package func wipe(_ bytes: inout [UInt8]) {
  bytes.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) }
  bytes = []
}
