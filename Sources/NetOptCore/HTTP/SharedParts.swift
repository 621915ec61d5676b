/// The parts of a value that is one reference: copies of the value share them until one of the copies is changed.
///
/// Requests and responses pass through every interceptor, and a call that waits has copies of them in each one's frame.
/// What reads them is inlined elsewhere too: an accessor that yields what is large allocates its frame.
@usableFromInline
struct SharedParts<Parts: Sendable>: Sendable {
  /// Unchecked sendable: the parts are changed only while a single value refers to them.
  @usableFromInline
  final class Storage: @unchecked Sendable {
    // Unchecked exclusivity for the same reason (docs/adr/0009).
    @usableFromInline @exclusivity(unchecked) var parts: Parts
    @usableFromInline init(_ parts: Parts) { self.parts = parts }
  }

  @usableFromInline var storage: Storage

  @inlinable init(_ parts: Parts) { storage = Storage(parts) }

  /// The parts. Changing them changes nothing in copies made before.
  @inlinable var value: Parts {
    _read { yield storage.parts }
    _modify {
      if !isKnownUniquelyReferenced(&storage) { storage = Storage(storage.parts) }
      yield &storage.parts
    }
  }
}
