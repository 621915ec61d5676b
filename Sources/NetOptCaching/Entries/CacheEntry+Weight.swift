import NetOptCore

extension CacheEntry {
  /// What an entry of these parts keeps.
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
    // The date beside it is the field's own text.
    total += Allocation.text(terms.validators.entityTag?.opaque ?? "")
    // Blocks of all sizes come and go, and leave gaps: an eighth of them.
    return total + total / 8
  }

  /// This object itself, with the allocator's header.
  static let object = 192 + (MemoryLayout<ResponseTerms>.size + 15) & ~15
}
