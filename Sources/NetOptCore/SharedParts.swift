/// The parts of a value that is one reference: copies of the value share them until one of the copies is changed.
///
/// Requests and responses pass through every interceptor, and a call that waits has copies of them in each one's frame.
struct SharedParts<Parts: Sendable>: Sendable {
  /// Unchecked sendable: the parts are changed only while a single value refers to them.
  private final class Storage: @unchecked Sendable {
    // Unchecked exclusivity for the same reason (docs/adr/0009).
    @exclusivity(unchecked) var parts: Parts
    init(_ parts: Parts) { self.parts = parts }
  }

  private var storage: Storage

  init(_ parts: Parts) { storage = Storage(parts) }

  /// The parts. Changing them changes nothing in copies made before.
  var value: Parts {
    _read { yield storage.parts }
    _modify {
      if !isKnownUniquelyReferenced(&storage) { storage = Storage(storage.parts) }
      yield &storage.parts
    }
  }
}
