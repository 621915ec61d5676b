/// A value of a JSON text, or the key of a member, which stands before its value: where it is in the text, never what it says.
///
/// The nodes of a text are in the order in which they begin: what an array or object has follows it.
@usableFromInline
package struct JSONNode: Sendable {
  /// The kinds of values.
  @usableFromInline
  package enum Kind: UInt8, Sendable { case object, array, string, number, `true`, `false`, null }

  @usableFromInline package let kind: Kind
  /// Whether a string is all ASCII without escapes: then its bytes are its text.
  @usableFromInline package let isPlain: Bool
  /// 32 bits are enough: the reader refuses longer texts.
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

  /// Its bytes; those of a string without the quotes.
  @inlinable package var range: Range<Int> { Range(uncheckedBounds: (Int(start), Int(end))) }

  /// The index of the node behind it and all that it has.
  @inlinable package var next: Int { Int(following) }

  /// How many elements an array has, or how many members an object.
  @inlinable package var count: Int { Int(children) }

  /// Notes where an array or object ends.
  mutating func close(_ position: Int, next: Int, count: Int) {
    end = Int32(truncatingIfNeeded: position)
    following = Int32(truncatingIfNeeded: next)
    children = Int32(truncatingIfNeeded: count)
  }
}

/// A step from an array or object to what it has.
package enum JSONStep: Hashable, Sendable {
  /// The element with this index.
  case index(Int)
  /// The member whose key is this node.
  case key(Int)
}

/// A key that stands in its object already.
package struct JSONDuplicate: Sendable {
  /// The node of the later one of both.
  package let key: Int
  /// The steps that lead to it.
  package let place: [JSONStep]
}

/// Where a text stops being JSON.
package struct JSONSyntaxFault: Error, Sendable {
  /// The byte.
  package let offset: Int
  /// The rule that it breaks. Nothing of the text is in it.
  package let rule: String
  /// The steps that lead to the value or key that was read last.
  package let place: [JSONStep]
}

/// What a JSON text consists of.
package struct JSONOutline: Sendable {
  /// The values; those before the fault when there is one.
  package let nodes: [JSONNode]
  /// The first keys that stand more than once in one object.
  package let duplicates: [JSONDuplicate]
  /// How many there are, with those that are not in `duplicates`.
  package let duplicateCount: Int
  /// `nil` for a text that is JSON to its end.
  package let fault: JSONSyntaxFault?
}
