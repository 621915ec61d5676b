import CCrypto

/// Overwrites bytes that are secret (OPENSSL_cleanse(3)), and empties the array.
///
/// - Parameter bytes: no other variable may share this array's storage. Otherwise only a copy is overwritten.
package func wipe(_ bytes: inout [UInt8]) {
  bytes.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) }
  bytes = []
}
