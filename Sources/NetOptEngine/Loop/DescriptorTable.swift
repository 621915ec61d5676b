/// A table of values by file descriptor. The table is an array whose indices are the descriptors. A new
/// descriptor gets the lowest free number (open(2)), so the array has few gaps.
///
/// Public for speed: the compiler specialises generic code in another module only if the code is public.
public struct DescriptorTable<Value> {
  @usableFromInline var slots: [Value?] = []

  /// Makes an empty table.
  @inlinable public init() {}

  /// The value of a descriptor; `nil` without one. A negative number has no value, and setting its value does
  /// nothing: libraries report -1 for a socket that they could not open. The subscript has no yielding
  /// accessor (`_modify`), because each use of such an accessor allocates its frame.
  @inlinable public subscript(descriptor: Int32) -> Value? {
    get {
      let index = Int(descriptor)
      return slots.indices.contains(index) ? slots[index] : nil
    }
    set {
      let index = Int(descriptor)
      guard index >= 0, newValue != nil || index < slots.count else { return }
      if index >= slots.count { slots += [Value?](repeating: nil, count: index + 1 - slots.count) }
      slots[index] = newValue
    }
  }

  /// The descriptors that have a value, in ascending order.
  @inlinable public var descriptors: [Int32] { slots.indices.filter { slots[$0] != nil }.map { Int32($0) } }

  /// The values in the table, by ascending descriptor.
  @inlinable public var values: some Sequence<Value> { slots.lazy.compactMap { $0 } }
}
