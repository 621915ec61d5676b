import NetOptCore

/// The limits of a store. All of them apply at the same time.
package struct CacheLimits: Hashable, Sendable {
  /// The maximum number of bytes, including keys, header fields and the overhead of the store.
  package var maxBytes: Int
  /// The maximum number of entries; `nil` for as many as fit.
  package var maxEntries: Int?
  /// How long the store keeps an entry at most, counted from when the response was received; `nil` for as
  /// long as there is room. It does not affect freshness.
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

  /// `maxAge` in milliseconds.
  var maxAgeMilliseconds: Int64? { maxAge?.wholeMilliseconds }
}
