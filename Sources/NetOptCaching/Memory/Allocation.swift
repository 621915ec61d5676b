/// The number of bytes that the allocator uses for an object. It adds a header of 8 bytes and rounds up to
/// multiples of 16 bytes.
enum Allocation {
  /// The bytes of an array: header and elements.
  static func array(of count: Int, each stride: Int) -> Int {
    count == 0 ? 0 : block(of: 32 + count * stride)
  }

  /// The bytes of a string's storage; 0 for strings of up to 15 bytes, which need none.
  static func text(_ text: String) -> Int {
    let count = text.utf8.count
    return count <= 15 ? 0 : block(of: 32 + count + 1)
  }

  private static func block(of bytes: Int) -> Int { (bytes + 8 + 15) & ~15 }
}
