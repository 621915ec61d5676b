/// Values by file descriptor. A new descriptor has the lowest number that is free (open(2)), so an array with some gaps
/// holds them, and finds each without hashing.
///
/// Public for the sake of speed, as `Readiness` is.
public struct DescriptorTable<Value> {
  @usableFromInline var slots: [Value?] = []

  /// Makes an empty table.
  @inlinable public init() {}

  /// The value of a descriptor, or `nil`. A negative number has no value, and setting one does nothing: libraries report -1
  /// for a socket that they could not open. No accessor that yields: each use of one allocates its frame.
  @inlinable public subscript(descriptor: Int32) -> Value? {
    get {
      let place = Int(descriptor)
      return slots.indices.contains(place) ? slots[place] : nil
    }
    set {
      let place = Int(descriptor)
      guard place >= 0, newValue != nil || place < slots.count else { return }
      if place >= slots.count { slots += [Value?](repeating: nil, count: place + 1 - slots.count) }
      slots[place] = newValue
    }
  }

  /// The values there are, by ascending descriptor.
  @inlinable public var values: some Sequence<Value> { slots.lazy.compactMap { $0 } }
}
