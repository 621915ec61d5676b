/// What could not be removed from a disk when that was asked for: somebody else had the database, or nothing could be written.
/// It is removed before anything else is done, so that it is never found again.
struct OwedRemovals: Sendable {
  /// What was to be removed.
  enum Removal: Sendable {
    /// The entries of a key, or some of them.
    case entries(of: CacheKey)
    /// Everything.
    case everything
  }

  /// How many keys are kept; with more of them everything is to be removed.
  static let mostKeys = 10_000

  /// The keys, none when everything is to be removed.
  private(set) var keys: Set<CacheKey> = []
  /// Whether everything is to be removed.
  private(set) var isEverything = false

  /// Whether nothing is.
  var isEmpty: Bool { keys.isEmpty && !isEverything }

  /// Adds one.
  mutating func add(_ removal: Removal) {
    if case .entries(let key) = removal, !isEverything {
      keys.insert(key)
      if keys.count <= Self.mostKeys { return }
    }
    keys = []
    isEverything = true
  }
}
