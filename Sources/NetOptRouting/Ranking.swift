import NetOptCore

/// The order of a host's endpoints.
///
/// Those that are known to work come first, fastest first; then those of which nothing is known, nearest first; then
/// those that failed of late. The order is total: of two endpoints one always comes first, and in the end it is the
/// list's order that says which.
struct Ranking {
  /// What an endpoint's place depends on before anything else. The cases are in their order.
  enum Standing: Hashable, Comparable {
    /// Its time to be ready, in nanoseconds.
    case known(Int64)
    case unknown
    /// Its time to be ready, as far as it is known, plus the penalty for its failures.
    case penalised(Int64)
  }

  /// An endpoint that is ranked.
  struct Entry: Hashable, Comparable {
    /// Its index in the list.
    let index: Int
    let standing: Standing
    /// In how many respects, of region and provider, it is not where this machine is.
    let distance: Int
    let weight: Int

    static func < (a: Entry, b: Entry) -> Bool {
      (a.standing, a.distance, b.weight, a.index) < (b.standing, b.distance, a.weight, b.index)
    }
  }

  /// By how much an endpoint must be better than the one in use to take its place. Changing costs new connections.
  static let smallestGain = Duration.milliseconds(5).nanoseconds
  static let smallestGainPercent: Int64 = 15
  /// How much slower than the fastest an endpoint may be to share its load.
  static let spreadPercent: Int64 = 10

  /// The entries in their order. The one in front is the one to use.
  private(set) var entries: [Entry]

  /// Ranks endpoints.
  ///
  /// - Parameters:
  ///   - leader: the index of the endpoint that is in use.
  ///   - draw: the random number by which this client chooses among endpoints that are equally fast.
  init(_ entries: [Entry], leader: Int?, draw: UInt64) {
    self.entries = entries.sorted()
    guard let position = front(leader, draw) else { return }
    self.entries.insert(self.entries.remove(at: position), at: 0)
  }

  /// The index of the endpoint in front when it is known to work: the one that is in use from now on.
  var leader: Int? {
    guard let first = entries.first, case .known = first.standing else { return nil }
    return first.index
  }

  /// The position of the entry that belongs in front.
  private func front(_ leader: Int?, _ draw: UInt64) -> Int? {
    guard case .known(let best) = entries.first?.standing else { return nil }
    if let leader, let position = entries.firstIndex(where: { $0.index == leader }),
      case .known(let score) = entries[position].standing,
      score - best <= max(Self.smallestGain, score * Self.smallestGainPercent / 100)
    {
      return position
    }
    // Drawn in the list's order, so that the choice does not depend on who is a little faster just now.
    let limit = Standing.known(best + best * Self.spreadPercent / 100)
    let eligible = entries.indices.prefix { entries[$0].standing <= limit }
      .sorted { entries[$0].index < entries[$1].index }
    let total = eligible.reduce(0) { $0 + UInt64(entries[$1].weight) }
    var rest = draw % max(total, 1)
    for position in eligible {
      let weight = UInt64(entries[position].weight)
      if rest < weight { return position }
      rest -= weight
    }
    return 0
  }
}
