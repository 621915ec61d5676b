import Glibc

extension String {
  /// Whether two texts have the same bytes. For `==` they are equal when they are canonically equivalent: "é" is equal to "e" with an accent
  /// behind it, and servers, users and signatures take them for two.
  package func hasSameBytes(as other: String) -> Bool {
    guard utf8.count == other.utf8.count else { return false }
    let isSame = utf8.withContiguousStorageIfAvailable { bytes in
      other.utf8.withContiguousStorageIfAvailable { others in
        // An empty text may have no address.
        guard let start = bytes.baseAddress, let otherStart = others.baseAddress else { return true }
        return memcmp(start, otherStart, bytes.count) == 0
      }
    }
    // A text that came from Foundation may lie elsewhere.
    return (isSame ?? nil) ?? utf8.elementsEqual(other.utf8)
  }
}
