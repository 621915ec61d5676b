/// The position in a JSON text of a value or of a member's key. Never contains the value itself.
///
/// The nodes of a text are in the order of their first bytes. The contents of an array or object follow its
/// node, and a key precedes its value.
@usableFromInline
package struct JSONNode: Sendable {
  /// The kinds of JSON values.
  @usableFromInline
  package enum Kind: UInt8, Sendable { case object, array, string, number, `true`, `false`, null }

  @usableFromInline package let kind: Kind
  /// Whether the node is a string that is ASCII without escapes, so that its bytes are its text.
  @usableFromInline package let isPlain: Bool
  /// 32 bits suffice, because the reader rejects longer texts.
  @usableFromInline let start: Int32
  @usableFromInline var end: Int32
  @usableFromInline var following: Int32
  @usableFromInline var children: Int32 = 0

  init(_ kind: Kind, _ range: Range<Int>, next: Int, isPlain: Bool = false) {
    self.kind = kind
    self.isPlain = isPlain
    start = Int32(truncatingIfNeeded: range.lowerBound)
    end = Int32(truncatingIfNeeded: range.upperBound)
    following = Int32(truncatingIfNeeded: next)
  }

  /// The range of the value's bytes. A string's range excludes the quotes.
  @inlinable package var range: Range<Int> { Range(uncheckedBounds: (Int(start), Int(end))) }

  /// The index of the next node after this node and its contents.
  @inlinable package var next: Int { Int(following) }

  /// The number of elements of an array or members of an object.
  @inlinable package var count: Int { Int(children) }

  /// Sets the end of an array or object.
  mutating func close(_ position: Int, next: Int, count: Int) {
    end = Int32(truncatingIfNeeded: position)
    following = Int32(truncatingIfNeeded: next)
    children = Int32(truncatingIfNeeded: count)
  }
}

/// A step from an array or object to one of its elements or members.
package enum JSONStep: Hashable, Sendable {
  /// The element at this index.
  case index(Int)
  /// The member whose key is the node with this index.
  case key(Int)
}

/// A key that occurs earlier in the same object.
package struct JSONDuplicate: Sendable {
  /// The index of the node of the later key.
  package let key: Int
  /// The path to the key.
  package let path: [JSONStep]
}

/// The position at which a text violates the JSON grammar.
package struct JSONSyntaxFault: Error, Sendable {
  /// The offset in bytes.
  package let offset: Int
  /// The violated rule. Contains nothing of the text.
  package let rule: String
  /// The path to the value or key that was read last.
  package let path: [JSONStep]
}

/// The structure of a JSON text.
package struct JSONOutline: Sendable {
  /// The nodes of the values and keys. If there is a fault, only the nodes before it.
  package let nodes: [JSONNode]
  /// The first keys that occur more than once in one object, up to the caller's limit.
  package let duplicates: [JSONDuplicate]
  /// The number of duplicate keys, including those not in `duplicates`.
  package let duplicateCount: Int
  /// The first fault; `nil` if the whole text is valid JSON.
  package let fault: JSONSyntaxFault?
}
