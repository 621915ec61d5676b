/// The copy-on-write storage of `NetOptRequest` and `NetOptResponse`. It has the size of one reference.
/// Copies share the parts until one of them changes.
///
/// The size matters because, while a call waits, the frame of each interceptor holds copies of the request
/// and the response. Other modules inline the accessors, because an accessor that yields a large value
/// allocates memory for its frame.
@usableFromInline
struct SharedParts<Parts: Sendable>: Sendable {
  /// The object that copies share. Unchecked `Sendable`: `value` changes the parts only while exactly one
  /// `SharedParts` refers to the object.
  @usableFromInline
  final class Storage: @unchecked Sendable {
    // Exclusivity is unchecked too: nothing else refers to the object during a change (docs/adr/0009).
    @usableFromInline @exclusivity(unchecked) var parts: Parts
    @usableFromInline init(_ parts: Parts) { self.parts = parts }
  }

  @usableFromInline var storage: Storage

  @inlinable init(_ parts: Parts) { storage = Storage(parts) }

  /// The parts. A change does not affect other copies of this value.
  @inlinable var value: Parts {
    _read { yield storage.parts }
    _modify {
      if !isKnownUniquelyReferenced(&storage) { storage = Storage(storage.parts) }
      yield &storage.parts
    }
  }
}
