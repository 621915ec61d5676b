import NetOptCore

/// Bytes derived from a label, so that client and server know them without communicating.
///
/// The bytes begin with the label, so bytes in a wrong place show where they belong. The rest is hexadecimal
/// digits, which a field value may contain and which compress.
struct Content {
  /// The maximum length of a content in bytes.
  static let most = 400_000

  let label: String

  /// The body of a response that is not cached.
  static func answer(to index: Int) -> Content { Content(label: "answer \(index)|") }
  /// The body of a request.
  static func upload(of index: Int) -> Content { Content(label: "upload \(index)|") }
  /// The value of a field.
  static func field(_ number: Int, of index: Int) -> Content {
    Content(label: "field \(number) of \(index)|")
  }
  /// The body of a cached response.
  static func cached(_ url: String, flavour: String, version: Int) -> Content {
    Content(label: "cached \(url) \(flavour) version \(version)|")
  }

  private static let pool: [UInt8] = {
    var random = SplitMix64(seed: 0x5707)
    let digits = Array("0123456789abcdef".utf8)
    var pool: [UInt8] = []
    pool.reserveCapacity(most + 65_536)
    while pool.count < most + 65_536 {
      var bits = random.next()
      for _ in 0..<16 {
        pool.append(digits[Int(bits & 15)])
        bits >>= 4
      }
    }
    return pool
  }()

  /// The first `count` bytes.
  func bytes(_ count: Int) -> [UInt8] {
    precondition(count <= Self.most, "there is no content of \(count) bytes")
    let label = Array(self.label.utf8)
    guard count > label.count else { return Array(label.prefix(count)) }
    let offset = Int(StableHash.fnv1a(label) & 0xffff)
    return label + Self.pool[offset..<offset + count - label.count]
  }

  /// The offset at which the bytes occur in this content; `nil` when they do not occur.
  func position(of bytes: some Collection<UInt8>) -> Int? {
    let whole = self.bytes(Self.most)
    return whole.firstRange(of: bytes)?.lowerBound
  }

  /// The offset at which the bytes first differ from the expected ones, or `nil`. Missing bytes at the end
  /// are no difference; additional bytes are.
  static func firstDifference(of bytes: [UInt8], at offset: Int, from expected: [UInt8]) -> Int? {
    let count = min(bytes.count, max(0, expected.count - offset))
    if expected.dropFirst(offset).prefix(count).elementsEqual(bytes.prefix(count)) {
      return bytes.count > count ? expected.count : nil
    }
    return (0..<count).first { bytes[$0] != expected[offset + $0] }.map { offset + $0 }
  }
}
