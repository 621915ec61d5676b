/// A value or a member's key in a JSON text: its kind and its position. Never contains the value itself.
///
/// `JSONOutline.nodes` has the nodes of a text in the order of their first bytes. The contents of an array or
/// object follow its node, and each value of an object follows its key. A key is a node of kind `string`.
@usableFromInline
package struct JSONNode: Sendable {
  /// The kinds of JSON values.
  @usableFromInline
  package enum Kind: UInt8, Sendable { case object, array, string, number, `true`, `false`, null }

  @usableFromInline package let kind: Kind
  /// Whether the node is a string of ASCII characters without escapes, so that its bytes are its text.
  @usableFromInline package let isPlain: Bool
  /// The offset of the value in the text, in bytes. 32 bits suffice for the offsets, indices and counts of a
  /// node, because the reader rejects texts of 2 GiB and more.
  @usableFromInline let start: Int32
  /// The offset after the last byte of the value.
  @usableFromInline var end: Int32
  /// `next` in 32 bits.
  @usableFromInline var following: Int32
  /// `count` in 32 bits.
  @usableFromInline var children: Int32 = 0

  /// Creates a node.
  ///
  /// - Parameters:
  ///   - range: the offsets of the value's bytes, as in `range`.
  ///   - next: the index of the next node, as in `next`.
  init(_ kind: Kind, _ range: Range<Int>, next: Int, isPlain: Bool = false) {
    self.kind = kind
    self.isPlain = isPlain
    start = Int32(truncatingIfNeeded: range.lowerBound)
    end = Int32(truncatingIfNeeded: range.upperBound)
    following = Int32(truncatingIfNeeded: next)
  }

  /// The offsets of the value's bytes in the text. The range of a string does not contain the quotes.
  @inlinable package var range: Range<Int> { Range(uncheckedBounds: (Int(start), Int(end))) }

  /// The index in `JSONOutline.nodes` of the first node after this node and its contents.
  @inlinable package var next: Int { Int(following) }

  /// The number of elements of an array or members of an object.
  @inlinable package var count: Int { Int(children) }

  /// Sets what is known only at the end of an array or object.
  ///
  /// - Parameter position: the offset after the closing bracket.
  mutating func close(_ position: Int, next: Int, count: Int) {
    end = Int32(truncatingIfNeeded: position)
    following = Int32(truncatingIfNeeded: next)
    children = Int32(truncatingIfNeeded: count)
  }
}

/// One step of a path to a value: from an array to an element, or from an object to a member.
package enum JSONStep: Hashable, Sendable {
  /// The element at this index.
  case index(Int)
  /// The member whose key is the node with this index in `JSONOutline.nodes`.
  case key(Int)
}

/// A key that equals an earlier key of the same object.
package struct JSONDuplicate: Sendable {
  /// The index in `JSONOutline.nodes` of this key, not of the earlier key.
  package let key: Int
  /// The path to the member with this key.
  package let path: [JSONStep]
}

/// Where and how a text violates the JSON grammar, or a limit of the reader.
package struct JSONSyntaxFault: Error, Sendable {
  /// The offset in the text, in bytes.
  package let offset: Int
  /// The violated rule in words, such as "this string is not closed". Contains nothing of the text.
  package let rule: String
  /// The path to the element or member that the reader was reading, or had read last.
  package let path: [JSONStep]
}

/// The result of reading a JSON text: the positions of its values, and its faults.
package struct JSONOutline: Sendable {
  /// The nodes of all values and keys, in the order of their first bytes. If there is a fault, only the nodes
  /// before it.
  package let nodes: [JSONNode]
  /// The duplicate keys in the order of the text, up to the maximum number that the caller gave.
  package let duplicates: [JSONDuplicate]
  /// The number of duplicate keys, including those not in `duplicates`.
  package let duplicateCount: Int
  /// The first fault; `nil` if the whole text is valid JSON.
  package let fault: JSONSyntaxFault?
}
