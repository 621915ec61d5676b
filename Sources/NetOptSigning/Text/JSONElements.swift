/// The elements of a JSON array. An element is made only when it is read: an array of 30 million numbers would
/// otherwise take gigabytes before the first number is refused.
package struct JSONElements: Sequence {
  /// The document of the array.
  let document: JSONDocument
  /// The index in `document.nodes` of the first element.
  let first: Int
  /// The number of elements.
  package let count: Int
  /// The path of the array.
  let path: String

  /// The element at a position. Takes time in proportion to the position.
  package subscript(position: Int) -> JSONPart {
    precondition((0..<count).contains(position), "an array has no element at this position")
    let child = (0..<position).reduce(first) { child, _ in document.nodes[child].next }
    return part(child, at: position)
  }

  package func makeIterator() -> AnyIterator<JSONPart> {
    var (child, position) = (first, 0)
    return AnyIterator {
      guard position < count else { return nil }
      defer { (child, position) = (document.nodes[child].next, position + 1) }
      return part(child, at: position)
    }
  }

  private func part(_ index: Int, at position: Int) -> JSONPart {
    JSONPart(document: document, index: index, path: "\(path)[\(position)]")
  }
}
