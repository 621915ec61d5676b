import NetOptCore
import Testing

@Suite struct NamedByteTests {
  @Test(
    "the name of a byte is its character, its common name or its number",
    arguments: [
      (0x00, "a NUL"), (0x0a, "a line feed (LF)"), (0x0d, "a carriage return (CR)"), (0x20, "a space"),
      (0x3a, "the character :"), (0x07, "the byte 0x07"), (0x7f, "the byte 0x7f"), (0xc3, "the byte 0xc3"),
    ] as [(UInt8, String)])
  func named(byte: UInt8, name: String) {
    #expect(byte.named == name)
  }

  @Test("every byte has its own name of printable ASCII characters")
  func printable() {
    let names = (UInt8.min...UInt8.max).map(\.named)
    #expect(names.allSatisfy { $0.unicodeScalars.allSatisfy { (0x20...0x7e).contains($0.value) } })
    #expect(Set(names).count == 256)
  }
}
