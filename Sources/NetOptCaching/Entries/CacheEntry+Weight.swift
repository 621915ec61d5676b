import NetOptCore

extension CacheEntry {
  /// Estimates the memory that an entry with these parts takes, in bytes. The estimate is never too small.
  static func weight(
    _ key: CacheKey, _ selectors: [Selector], _ fields: HeaderFields, _ body: [UInt8], _ terms: ResponseTerms
  ) -> Int {
    var total = object + Allocation.array(of: body.isEmpty ? 0 : body.capacity, each: 1)
    total += Allocation.text(key.text) + Allocation.text(key.partition)
    total += Allocation.array(of: fields.count, each: MemoryLayout<HeaderField>.stride)
    for field in fields { total += Allocation.text(field.name) + Allocation.text(field.value) }
    total += Allocation.array(of: selectors.count, each: MemoryLayout<Selector>.stride)
    for selector in selectors {
      total += Allocation.text(selector.name) + Allocation.text(selector.value ?? "")
    }
    let names = terms.control.uncachedFields
    total += Allocation.array(of: names.count, each: MemoryLayout<String>.stride)
    for name in names { total += Allocation.text(name) }
    // `lastModified` shares the string of the header field.
    total += Allocation.text(terms.validators.entityTag?.opaque ?? "")
    // Adds an eighth for the gaps between heap blocks of different sizes.
    return total + total / 8
  }

  /// The size of a `CacheEntry` object in bytes, without the strings and arrays that it refers to, and with
  /// the allocator's header.
  static let object = 208 + (MemoryLayout<ResponseTerms>.size + 15) & ~15
}
