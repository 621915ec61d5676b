import NetOptCore

/// Bytes that follow from a label. Client and server compute them independently, so a check needs only the
/// label.
///
/// The bytes begin with the label, so bytes in a wrong place show where they belong. The rest are hexadecimal
/// digits, which may also be the value of a field, and which gzip can compress.
struct Content {
  /// The maximum length of a content in bytes.
  static let most = 400_000

  /// The label, which ends with "|".
  let label: String

  /// The body of the response to a request whose URL is not cacheable.
  static func answer(to index: Int) -> Content { Content(label: "answer \(index)|") }
  /// The body of the request with this index.
  static func upload(of index: Int) -> Content { Content(label: "upload \(index)|") }
  /// The value of an additional field of a response (`AnswerPlan.fields`).
  static func field(_ number: Int, of index: Int) -> Content {
    Content(label: "field \(number) of \(index)|")
  }
  /// The body of a version of a cacheable URL.
  ///
  /// - Parameter url: the authority and the target of the request.
  static func cached(_ url: String, flavour: String, version: Int) -> Content {
    Content(label: "cached \(url) \(flavour) version \(version)|")
  }

  /// Random hexadecimal digits. Each content has a part of them after its label. A hash of the label decides
  /// where the part begins.
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

  /// Compares a part of a body with the expected body. Bytes beyond the end of the expected body are wrong. A
  /// part that ends too early is right as far as it goes.
  ///
  /// - Parameters:
  ///   - bytes: the part.
  ///   - offset: the offset of the part in its body.
  /// - Returns: the offset in the body of the first wrong byte; `nil` when no byte is wrong.
  static func firstDifference(of bytes: [UInt8], at offset: Int, from expected: [UInt8]) -> Int? {
    let count = min(bytes.count, max(0, expected.count - offset))
    if expected.dropFirst(offset).prefix(count).elementsEqual(bytes.prefix(count)) {
      return bytes.count > count ? expected.count : nil
    }
    return (0..<count).first { bytes[$0] != expected[offset + $0] }.map { offset + $0 }
  }
}
