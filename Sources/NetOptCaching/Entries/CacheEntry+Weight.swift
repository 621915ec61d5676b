import NetOptCore

extension CacheEntry {
  /// The bytes of memory that an entry of these parts takes.
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
    // Adds an eighth for the gaps that blocks of different sizes leave in the heap.
    return total + total / 8
  }

  /// The bytes of the entry object itself, with the allocator's header.
  static let object = 192 + (MemoryLayout<ResponseTerms>.size + 15) & ~15
}
