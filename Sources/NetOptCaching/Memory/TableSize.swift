/// Computes the memory of the arrays and dictionaries of the memory tier. Unused capacity counts too.
enum TableSize {
  /// The bytes of an array's storage: a header, the elements, and what the allocator adds.
  static func bytes<Element>(of array: [Element]) -> Int {
    array.capacity == 0 ? 0 : 48 + array.capacity * MemoryLayout<Element>.stride
  }

  /// The bytes of a dictionary's storage: a header, one bit per bucket, the buckets, and what the allocator
  /// adds. The number of buckets is a power of two, and doubles when three quarters of the buckets are used.
  static func bytes<Key, Value>(of table: [Key: Value]) -> Int {
    guard table.capacity > 0 else { return 0 }
    let buckets = max(table.capacity / 3 * 4, 2)
    return 96 + (buckets + 63) / 64 * 8 + buckets * (MemoryLayout<Key>.stride + MemoryLayout<Value>.stride)
  }

  /// Whether less than a quarter of a table is used. Its owner then copies it to a table with room for twice
  /// the current number of elements. The cost of the copies is constant for each change, because many
  /// elements are added or removed between two copies.
  ///
  /// - Parameter least: tables with at most this capacity are not worth shrinking.
  static func isSparse<Key, Value>(_ table: [Key: Value], least: Int) -> Bool {
    table.capacity > least && table.count < table.capacity / 4
  }
}
