/// Hashes that are the same in every run, on every machine: Swift's own differ from run to run.
package enum StableHash {
  /// FNV-1a of 64 bits (draft-eastlake-fnv).
  ///
  /// - Parameter hash: of the bytes before; the hash of no bytes unless it is given.
  package static func fnv1a(_ bytes: some Sequence<UInt8>, after hash: UInt64 = 0xcbf2_9ce4_8422_2325)
    -> UInt64
  {
    bytes.reduce(hash) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
  }
}
