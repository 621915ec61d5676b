import NetOptCore
import Testing

@Suite struct ByteTextTests {
  @Test(
    "append(decimal:) writes the decimal digits of a number",
    arguments: [0, 7, 10, 99, 1_700_000_000, -1, -10, .max, .min] as [Int64])
  func decimalDigits(_ number: Int64) {
    var text = Array("ts=".utf8)
    text.append(decimal: number)
    #expect(String(decoding: text, as: UTF8.self) == "ts=\(number)")
  }

  @Test("hexadecimal text is in lower case and reads back as the same bytes")
  func hexadecimalDigits() {
    for count in 0...67 {
      let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ count) }
      let expected = bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
      var text = Array("sig=".utf8)
      text.append(hex: bytes)
      #expect(String(decoding: text, as: UTF8.self) == "sig=" + expected)
      #expect(Hex.text(bytes) == expected)
      #expect(Hex.bytes(expected.utf8) == bytes)
    }
    let every = Array(UInt8.min...UInt8.max)
    #expect(Hex.bytes(Hex.text(every).utf8) == every)
  }
}
