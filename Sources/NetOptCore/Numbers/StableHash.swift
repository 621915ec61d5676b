/// A hash function that gives the same hash in every run and on every machine. Swift's own hashes differ from
/// run to run. Not for secrets.
package enum StableHash {
  /// Returns the 64-bit FNV-1a hash of bytes (draft-eastlake-fnv).
  ///
  /// - Parameter hash: the hash of the bytes before these, to hash a text in parts. Default: the hash of no
  ///   bytes.
  package static func fnv1a(_ bytes: some Sequence<UInt8>, after hash: UInt64 = 0xcbf2_9ce4_8422_2325)
    -> UInt64
  {
    bytes.reduce(hash) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
  }
}
