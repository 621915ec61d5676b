import NetOptCore

/// How much a store keeps, and for how long. All hold at once.
package struct CacheLimits: Hashable, Sendable {
  /// The most bytes, with keys, fields and what it takes to keep them.
  package var maxBytes: Int
  /// The most entries; `nil` for as many as fit.
  package var maxEntries: Int?
  /// How long an entry is kept at most, from when its response came; `nil` for as long as there is room. It says nothing
  /// about freshness.
  package var maxAge: Duration?

  /// Makes limits.
  package init(maxBytes: Int, maxEntries: Int? = nil, maxAge: Duration? = nil) {
    self.maxBytes = maxBytes
    self.maxEntries = maxEntries
    self.maxAge = maxAge
  }

  /// For memory: 64 MiB.
  package static let memory = CacheLimits(maxBytes: 64 << 20)
  /// For a disk: 1 GiB.
  package static let disk = CacheLimits(maxBytes: 1 << 30)

  /// `maxAge` in milliseconds.
  var maxAgeMilliseconds: Int64? { maxAge?.wholeMilliseconds }
}
