import NetOptCore

extension CacheEntry {
  /// How many bytes of memory the entry keeps: body, fields, texts, and what the allocator and the objects around them
  /// add. Not less than it is.
  package var weight: Int {
    // Bodies of all sizes come and go, and leave gaps: a tenth of them.
    var total = Self.object + Self.array(of: body.capacity + body.count / 10, each: 1)
    total += Self.text(key.text) + Self.text(key.partition) + Self.text(reason)
    if !fields.isEmpty { total += Self.array(of: fields.count, each: MemoryLayout<HTTPField>.stride) }
    for field in fields { total += Self.text(field.name) + Self.text(field.value) }
    if !selectors.isEmpty { total += Self.array(of: selectors.count, each: MemoryLayout<Selector>.stride) }
    for selector in selectors { total += Self.text(selector.name) + Self.text(selector.value ?? "") }
    let names = terms.control.uncachedFields
    if !names.isEmpty { total += Self.array(of: names.count, each: MemoryLayout<String>.stride) }
    for name in names { total += Self.text(name) }
    // The date beside it is the field's own text.
    total += Self.text(terms.validators.entityTag?.opaque ?? "")
    return total
  }

  /// This object itself, with the allocator's header.
  private static let object = 208 + (MemoryLayout<ResponseTerms>.size + 15) & ~15

  /// An array's header and its elements, as the allocator rounds them up.
  private static func array(of count: Int, each stride: Int) -> Int {
    count == 0 ? 0 : (count * stride + 32 + 8 + 15) & ~15
  }

  /// A text's storage; short ones have none.
  private static func text(_ text: String) -> Int {
    let count = text.utf8.count
    return count <= 15 ? 0 : (count + 1 + 32 + 8 + 15) & ~15
  }
}
