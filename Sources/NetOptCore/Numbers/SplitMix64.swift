/// The generator SplitMix64 (Steele, Lea, Flood 2014). Its sequence follows from the seed, on every machine and with every
/// version of Swift, so that what was drawn by chance can be drawn again.
package struct SplitMix64: RandomNumberGenerator, Sendable {
  private var state: UInt64

  /// Makes a generator.
  package init(seed: UInt64) { state = seed }

  /// The next 64 bits.
  package mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }

  /// A number from 0 to `bound` - 1, each as likely (Lemire 2019). The standard library's own way is not used because
  /// it may change between versions.
  ///
  /// - Precondition: `bound` is greater than 0.
  package mutating func below(_ bound: UInt64) -> UInt64 {
    precondition(bound > 0, "there is no number below 0")
    var product = next().multipliedFullWidth(by: bound)
    let reject = (0 &- bound) % bound
    while product.low < reject { product = next().multipliedFullWidth(by: bound) }
    return product.high
  }
}
