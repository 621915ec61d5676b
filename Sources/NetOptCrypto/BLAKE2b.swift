/// BLAKE2b (RFC 7693) without a key, with digests of 1 to 64 bytes. netopt has its own implementation because
/// OpenSSL 3.0 only has the digest of 64 bytes, and a shorter digest is not a part of the longer one
/// (docs/adr/0012).
package enum BLAKE2b {
  /// Computes the digest of a message.
  ///
  /// - Parameter length: the length of the digest in bytes.
  /// - Precondition: the length is from 1 to 64.
  package static func digest(of message: Span<UInt8>, length: Int) -> [UInt8] {
    precondition((1...64).contains(length), "a BLAKE2b digest has 1 to 64 bytes")
    var state = initial
    // The parameters are the length, no key, and fanout and depth 1 (RFC 7693, section 2.5).
    state[0] ^= 0x0101_0000 ^ UInt64(length)
    var start = 0
    // The last block is padded with zeros. An empty message has one block too.
    while message.count - start > 128 {
      compress(&state, block(message, start), count: UInt64(start + 128), isLast: false)
      start += 128
    }
    compress(&state, block(message, start), count: UInt64(message.count), isLast: true)
    return (0..<length).map { UInt8(truncatingIfNeeded: state[$0 / 8] >> (8 * UInt64($0 % 8))) }
  }

  /// The initial state (RFC 7693, section 2.6).
  private static let initial: InlineArray<8, UInt64> = [
    0x6a09_e667_f3bc_c908, 0xbb67_ae85_84ca_a73b, 0x3c6e_f372_fe94_f82b, 0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1, 0x9b05_688c_2b3e_6c1f, 0x1f83_d9ab_fb41_bd6b, 0x5be0_cd19_137e_2179,
  ]

  /// The order in which each round uses the words of a block (SIGMA; RFC 7693, section 2.7).
  private static let order: [InlineArray<16, UInt8>] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
    [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
    [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
    [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
    [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
  ]

  /// Returns the block of 128 bytes that begins at an index of the message, as words in little-endian order.
  private static func block(_ message: Span<UInt8>, _ start: Int) -> InlineArray<16, UInt64> {
    var words = InlineArray<16, UInt64>(repeating: 0)
    for index in start..<min(start + 128, message.count) {
      words[(index - start) / 8] |= UInt64(message[index]) << (8 * UInt64((index - start) % 8))
    }
    return words
  }

  /// Mixes a block into the state (function F; RFC 7693, section 3.2).
  ///
  /// - Parameter count: the number of message bytes up to the end of the block, without padding.
  private static func compress(
    _ state: inout InlineArray<8, UInt64>, _ words: InlineArray<16, UInt64>, count: UInt64, isLast: Bool
  ) {
    var v = InlineArray<16, UInt64> { $0 < 8 ? state[$0] : initial[$0 - 8] }
    // The upper half of the counter stays zero, because the whole message is in memory.
    v[12] ^= count
    if isLast { v[14] = ~v[14] }
    for round in 0..<12 {
      let s = order[round % 10]
      for step in 0..<8 {
        // Four columns, then four diagonals.
        let shift = step / 4
        let a = step % 4
        let b = 4 + (a + shift) % 4
        let c = 8 + (a + 2 * shift) % 4
        let d = 12 + (a + 3 * shift) % 4
        v[a] = v[a] &+ v[b] &+ words[Int(s[2 * step])]
        v[d] = rotated(v[d] ^ v[a], 32)
        v[c] = v[c] &+ v[d]
        v[b] = rotated(v[b] ^ v[c], 24)
        v[a] = v[a] &+ v[b] &+ words[Int(s[2 * step + 1])]
        v[d] = rotated(v[d] ^ v[a], 16)
        v[c] = v[c] &+ v[d]
        v[b] = rotated(v[b] ^ v[c], 63)
      }
    }
    for index in 0..<8 { state[index] ^= v[index] ^ v[index + 8] }
  }

  /// Rotates a word to the right by a number of bits.
  private static func rotated(_ word: UInt64, _ count: UInt64) -> UInt64 {
    word >> count | word << (64 - count)
  }
}
