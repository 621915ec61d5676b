/// The copy-on-write storage of a value that is one reference wide. Copies of the value share the storage
/// until one of them changes.
///
/// Requests and responses pass through every interceptor, and a waiting call holds copies of them in each
/// interceptor's frame. Accessors are inlinable for other modules, because an accessor that yields a large
/// value allocates its frame.
@usableFromInline
struct SharedParts<Parts: Sendable>: Sendable {
  /// Unchecked Sendable: the parts are changed only while exactly one value refers to them.
  @usableFromInline
  final class Storage: @unchecked Sendable {
    // Unchecked exclusivity for the same reason (docs/adr/0009).
    @usableFromInline @exclusivity(unchecked) var parts: Parts
    @usableFromInline init(_ parts: Parts) { self.parts = parts }
  }

  @usableFromInline var storage: Storage

  @inlinable init(_ parts: Parts) { storage = Storage(parts) }

  /// The parts. A change does not affect copies made before.
  @inlinable var value: Parts {
    _read { yield storage.parts }
    _modify {
      if !isKnownUniquelyReferenced(&storage) { storage = Storage(storage.parts) }
      yield &storage.parts
    }
  }
}
