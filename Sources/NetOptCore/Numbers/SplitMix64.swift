/// The random number generator SplitMix64 (Steele, Lea, Flood 2014). The same seed
/// gives the same sequence on every machine and with every version of Swift, so random decisions can be
/// reproduced. Not for secrets.
package struct SplitMix64: RandomNumberGenerator, Sendable {
  private var state: UInt64

  /// Creates a generator.
  package init(seed: UInt64) { state = seed }

  /// Returns the next 64 random bits.
  package mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }

  /// Returns a uniformly distributed number from 0 to `bound` - 1 (Lemire 2019). Use this function instead of
  /// the standard library's, whose algorithm may change between versions.
  ///
  /// - Precondition: `bound` is greater than 0.
  package mutating func below(_ bound: UInt64) -> UInt64 {
    precondition(bound > 0, "there is no number below 0")
    var product = next().multipliedFullWidth(by: bound)
    // 2^64 modulo `bound`. Without the rejections, some results would be more frequent than others.
    let reject = (0 &- bound) % bound
    while product.low < reject { product = next().multipliedFullWidth(by: bound) }
    return product.high
  }
}
