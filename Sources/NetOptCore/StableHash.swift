/// Hashes that are the same in every run, on every machine: Swift's own differ from run to run.
package enum StableHash {
  /// FNV-1a of 64 bits (draft-eastlake-fnv).
  package static func fnv1a(_ bytes: some Sequence<UInt8>) -> UInt64 {
    bytes.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
  }
}
