/// What the tables of the memory tier take, whether they are full or not.
enum TableSize {
  /// An array's storage: a header, the elements, and what the allocator adds.
  static func bytes<Element>(of array: [Element]) -> Int {
    array.capacity == 0 ? 0 : 48 + array.capacity * MemoryLayout<Element>.stride
  }

  /// A dictionary's storage: a header, a bit for each bucket, the buckets, and what the allocator adds. Three quarters of the
  /// buckets, which are a power of two, are used before there are twice as many.
  static func bytes<Key, Value>(of table: [Key: Value]) -> Int {
    guard table.capacity > 0 else { return 0 }
    let buckets = max(table.capacity / 3 * 4, 2)
    return 96 + (buckets + 63) / 64 * 8 + buckets * (MemoryLayout<Key>.stride + MemoryLayout<Value>.stride)
  }

  /// Whether less than a quarter of a table is used: time to make one for twice as many as there are. So many have been removed
  /// before, and have to be added or removed until the next time, that it costs a constant for each.
  ///
  /// - Parameter least: tables for no more than this are not worth it.
  static func isSparse<Key, Value>(_ table: [Key: Value], least: Int) -> Bool {
    table.capacity > least && table.count < table.capacity / 4
  }
}
