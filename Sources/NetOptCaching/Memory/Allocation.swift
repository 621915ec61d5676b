/// What the allocator takes for an object: it rounds up to multiples of 16 bytes, with 8 bytes of its own.
enum Allocation {
  /// An array's header and its elements.
  static func array(of count: Int, each stride: Int) -> Int {
    count == 0 ? 0 : block(of: 32 + count * stride)
  }

  /// A text's storage; short ones have none.
  static func text(_ text: String) -> Int {
    let count = text.utf8.count
    return count <= 15 ? 0 : block(of: 32 + count + 1)
  }

  private static func block(of bytes: Int) -> Int { (bytes + 8 + 15) & ~15 }
}
