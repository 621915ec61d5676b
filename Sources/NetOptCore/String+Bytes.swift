extension String {
  /// Whether two texts have the same bytes. For `==` they are equal when they are canonically equivalent: "é" is equal to "e" with an accent
  /// behind it, and servers, users and signatures take them for two.
  package func hasSameBytes(as other: String) -> Bool {
    guard utf8.count == other.utf8.count, self == other else { return false }
    // What is equal to ASCII and as long is ASCII, and has no other form. Both counts of such a text are known to it.
    return utf8.count == utf16.count || utf8.elementsEqual(other.utf8)
  }
}
