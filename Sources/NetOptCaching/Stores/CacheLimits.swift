import NetOptCore

/// The limits of a memory store or a disk store. The store evicts entries until it meets all of them.
package struct CacheLimits: Hashable, Sendable {
  /// The maximum number of bytes, including keys, header fields and the overhead of the store.
  package var maxBytes: Int
  /// The maximum number of entries in a disk store, and of keys in a memory store; `nil` for no such limit.
  package var maxEntries: Int?
  /// How long the store keeps an entry after its response was received; `nil` for no such limit. It does not
  /// affect how long the response is fresh.
  package var maxAge: Duration?

  /// Makes limits.
  package init(maxBytes: Int, maxEntries: Int? = nil, maxAge: Duration? = nil) {
    self.maxBytes = maxBytes
    self.maxEntries = maxEntries
    self.maxAge = maxAge
  }

  /// The default limits of a memory store: 64 MiB.
  package static let memory = CacheLimits(maxBytes: 64 << 20)
  /// The default limits of a disk store: 1 GiB.
  package static let disk = CacheLimits(maxBytes: 1 << 30)

  /// `maxAge` in milliseconds, rounded down.
  var maxAgeMilliseconds: Int64? { maxAge?.wholeMilliseconds }
}
