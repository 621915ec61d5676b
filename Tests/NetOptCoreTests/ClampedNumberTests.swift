import NetOptCore
import Testing

@Suite struct ClampedNumberTests {
  @Test(
    "every number has a clamped integer, which is exact within the range of the type",
    arguments: UInt64(1)...4)
  func everyNumber(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    for _ in 0..<100_000 {
      let number = Double(bitPattern: random.next())
      let integer = Int64(clamped: number)
      if number.isNaN {
        #expect(integer == 0)
      } else if number >= 0x1p63 {
        #expect(integer == .max)
      } else if number < -0x1p63 {
        #expect(integer == .min)
      } else {
        #expect(integer == Int64(number))
      }
    }
  }

  @Test("the ends of the range, infinities and fractions")
  func ends() {
    for (number, integer) in [
      (Double.infinity, Int.max), (-.infinity, .min), (.nan, 0), (0x1p63, .max), (-0x1p63, .min), (0.9, 0),
      (-0.9, 0), (-1.5, -1), (0x1p62, 1 << 62), (.greatestFiniteMagnitude, .max), (.leastNonzeroMagnitude, 0),
    ] { #expect(Int(clamped: number) == integer, "\(number)") }
    #expect(UInt8(clamped: 300) == 255 && UInt8(clamped: -1) == 0 && UInt8(clamped: 255.9) == 255)
  }
}
