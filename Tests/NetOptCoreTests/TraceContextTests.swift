import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// The fields of W3C Trace Context.
@Suite struct TraceContextTests {
  private static let valid = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

  private func read(_ parents: String..., state: [String] = []) -> TraceContext? {
    var fields: HeaderFields = [:]
    for parent in parents { fields.append(HeaderField("Traceparent", parent)) }
    for state in state { fields.append(HeaderField("TraceState", state)) }
    return TraceContext(fields)
  }

  @Test("the fields are read and written")
  func fields() throws {
    let context = try #require(read(Self.valid, state: ["a=1", "", "b=2"]))
    #expect(context.traceID == TraceContext.ID(high: 0x0af7_6519_16cd_43dd, low: 0x8448_eb21_1c80_319c))
    #expect(context.spanID == 0xb7ad_6b71_6920_3331 && context.isSampled && context.state == "a=1,b=2")
    #expect(context.traceparent == Self.valid)
    #expect(context.traceID.description == "0af7651916cd43dd8448eb211c80319c")
    // A later version may have more, and is answered in version 0.
    let later = try #require(read("cc\(Self.valid.dropFirst(2))-more"))
    #expect(later.traceparent == Self.valid)
    // Flags that are not known are not passed on.
    #expect(read("\(Self.valid.dropLast(2))fe")?.flags == 2)
  }

  /// Texts that are not of the form.
  private static let invalid: [String] = [
    "", "00", valid.uppercased(), "\(valid)-", "\(valid)-01", "ff\(valid.dropFirst(2))", " \(valid)",
    valid.replacing("-b7", with: "-g7"), valid.replacing("-", with: "_"), "\(valid.dropLast())",
    "00-00000000000000000000000000000000-b7ad6b7169203331-01",
    "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", "cc\(valid.dropFirst(2))x",
  ]

  @Test("a field that is not of the form begins a new trace", arguments: invalid)
  func refused(_ text: String) { #expect(read(text, state: ["a=1"]) == nil) }

  @Test("two fields are no trace, and a state alone is none")
  func several() {
    #expect(read(Self.valid, Self.valid) == nil)
    #expect(TraceContext(["tracestate": "a=1"]) == nil)
  }

  @Test("what is written is read again, and changed bytes never trap", arguments: 1...3)
  func random(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    for _ in 0..<10_000 {
      let context = TraceContext(
        traceID: .init(high: random.next(), low: random.next()), spanID: random.next(),
        flags: UInt8(random.below(4)))
      #expect(read(context.traceparent) == context)
      var bytes = Array(context.traceparent.utf8)
      bytes[Int(random.below(UInt64(bytes.count)))] = UInt8(random.below(256))
      if random.isOne(in: 3) { bytes.removeLast(Int(random.below(56))) }
      let text = String(decoding: bytes, as: UTF8.self)
      // What is read is what was written, but for the version and the flags.
      if let read = read(text) { #expect(read.traceparent.dropFirst(2).dropLast(2) == text.utf8Text(3..<53)) }
    }
  }
}

extension String {
  /// The bytes of a range as text, with the hyphen before them.
  fileprivate func utf8Text(_ range: Range<Int>) -> String {
    String(decoding: Array(utf8)[(range.lowerBound - 1)..<range.upperBound], as: UTF8.self)
  }
}
