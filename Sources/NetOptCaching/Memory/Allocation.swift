/// Computes how many bytes glibc's allocator uses for arrays and strings. The allocator adds a header of 8
/// bytes to each block and rounds the size up to a multiple of 16 bytes.
enum Allocation {
  /// The bytes of an array's storage: Swift's header of 32 bytes and `count` elements of `stride` bytes.
  static func array(of count: Int, each stride: Int) -> Int {
    count == 0 ? 0 : block(of: 32 + count * stride)
  }

  /// The bytes of a string's storage; 0 for a string of up to 15 bytes, which Swift stores without a block.
  static func text(_ text: String) -> Int {
    let count = text.utf8.count
    return count <= 15 ? 0 : block(of: 32 + count + 1)
  }

  /// The size of the block that the allocator uses for a request of some bytes.
  private static func block(of bytes: Int) -> Int { (bytes + 8 + 15) & ~15 }
}
