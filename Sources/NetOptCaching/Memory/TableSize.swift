/// The sizes of the tables of the memory tier, full or not.
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

  /// Whether less than a quarter of a table is used. Then the owner makes a new table with room for twice the
  /// current number of elements. The copy costs a constant per element, because many elements are removed
  /// before it and many are added or removed until the next one.
  ///
  /// - Parameter least: tables with at most this capacity are not worth shrinking.
  static func isSparse<Key, Value>(_ table: [Key: Value], least: Int) -> Bool {
    table.capacity > least && table.count < table.capacity / 4
  }
}
