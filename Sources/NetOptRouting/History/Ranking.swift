import NetOptCore

/// The order of a host's endpoints.
///
/// Endpoints that are known to work come first, the fastest first. Endpoints of unknown speed follow, the
/// nearest first. Endpoints that failed recently come last. The order is total: when all other properties are
/// equal, the list's order decides. The planner keeps the ranking between requests, and moves an endpoint in
/// it when the planner has learned something about the endpoint.
struct Ranking: Sendable {
  /// What is known of an endpoint: the first criterion for its place. The cases are in the order of the
  /// ranking.
  enum Standing: Hashable, Comparable, Sendable {
    /// The endpoint is known to work. The value is its score in nanoseconds.
    case known(Int64)
    /// The endpoint has neither a measured connection time nor a recent failure.
    case unknown
    /// The endpoint failed recently, or is suspected of being silent. The value is its score in nanoseconds,
    /// penalties included.
    case penalised(Int64)

    /// The score; `nil` without one.
    var score: Duration? {
      switch self {
      case .known(let score), .penalised(let score): .nanoseconds(score)
      case .unknown: nil
      }
    }
  }

  /// A ranked endpoint.
  struct Entry: Hashable, Comparable, Sendable {
    /// What is known of the endpoint: the first criterion for its place.
    let standing: Standing
    // `index`, `weight` and `distance` in small types, because each plan copies the entries.
    private let smallIndex: Int32
    private let smallWeight: Int16
    private let smallDistance: Int8

    /// The endpoint's index in the list.
    var index: Int { Int(smallIndex) }
    /// The distance to this machine, 0 to 2: 1 when the region is not known to be the same, plus 1 when the
    /// provider is not known to be the same.
    var distance: Int { Int(smallDistance) }
    /// The endpoint's weight in the list. Of two entries with equal standing and distance, the entry with the
    /// greater weight comes first.
    var weight: Int { Int(smallWeight) }

    init(index: Int, standing: Standing, distance: Int, weight: Int) {
      self.standing = standing
      smallIndex = Int32(clamping: index)
      smallWeight = Int16(clamping: weight)
      smallDistance = Int8(clamping: distance)
    }

    static func < (a: Entry, b: Entry) -> Bool {
      // Written out, the usual case first, because this comparison runs often.
      if case .known(let one) = a.standing, case .known(let other) = b.standing, one != other {
        return one < other
      }
      return (a.standing, a.distance, b.weight, a.index) < (b.standing, b.distance, a.weight, b.index)
    }
  }

  /// The minimum gain in nanoseconds. The endpoint in use is replaced only when the best score is lower than
  /// its score by more than `smallestGain` and by more than `smallestGainPercent`, because the change costs
  /// new connections.
  static let smallestGain: Int64 = 5_000_000
  /// The minimum gain in percent of the score of the endpoint in use.
  static let smallestGainPercent: Int64 = 15
  /// Clients spread their load over the fastest endpoint and the endpoints whose scores exceed its score by
  /// at most this many percent. Each client chooses one of these endpoints.
  static let spreadPercent: Int64 = 10

  /// The entries in order.
  private(set) var entries: [Entry]

  /// Makes a ranking of entries in any order.
  init(_ entries: [Entry] = []) { self.entries = entries.sorted() }

  // MARK: Updating the order

  /// Inserts an endpoint, or moves it to its new place.
  mutating func insertOrMove(_ entry: Entry) {
    guard var position = position(of: entry.index) else {
      entries.insert(entry, at: entries.firstIndex { entry < $0 } ?? entries.endIndex)
      return
    }
    // The entries between the old place and the new one move by one.
    while position > 0, entry < entries[position - 1] {
      entries[position] = entries[position - 1]
      position -= 1
    }
    while position + 1 < entries.count, entries[position + 1] < entry {
      entries[position] = entries[position + 1]
      position += 1
    }
    entries[position] = entry
  }

  /// Removes an endpoint.
  mutating func remove(_ index: Int) {
    if let position = position(of: index) { entries.remove(at: position) }
  }

  /// The position in `entries` of the endpoint with an index in the list; `nil` if the ranking lacks it.
  func position(of index: Int) -> Int? { entries.firstIndex { $0.index == index } }

  // MARK: Choosing the first endpoint

  /// The position of the endpoint to try first. The endpoint in use stays the first as long as no other
  /// endpoint is clearly better. Otherwise the client's draw decides among the endpoints whose scores are
  /// within 10 % of the best score (`spreadPercent`).
  ///
  /// - Parameters:
  ///   - leader: the index of the endpoint in use; `nil` without one.
  ///   - draw: the random number by which this client chooses among endpoints of about the same speed.
  ///   - isSticky: whether the endpoint in use keeps its place, however much better another one is.
  func front(leader: Int?, draw: UInt64, isSticky: Bool = false) -> Int {
    guard case .known(let best) = entries.first?.standing else { return 0 }
    if let leader, let position = position(of: leader), case .known(let score) = entries[position].standing,
      isSticky || score - best <= max(Self.smallestGain, score * Self.smallestGainPercent / 100)
    {
      return position
    }
    // The draw takes the endpoints in the list's order, so that small changes of speed do not change the
    // choice.
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

  /// Draws two endpoints by weight, and returns the position of the better one. The better endpoint has the
  /// smaller product of its score and its number of requests under way, with the next request counted. The
  /// draw is among the endpoints that are known to work or, if there are none, among those of unknown speed.
  ///
  /// - Parameter inFlight: returns the number of requests under way at an endpoint, by its index in the list.
  func betterOfTwo(inFlight: (Int) -> Int, using random: inout SplitMix64) -> Int {
    let isKnown = { (entry: Entry) in if case .known = entry.standing { true } else { false } }
    let known = entries.prefix(while: isKnown).count
    let count = known > 0 ? known : entries.prefix { $0.standing == .unknown }.count
    guard count > 1 else { return 0 }
    let first = drawn(of: count, without: nil, using: &random)
    let second = drawn(of: count, without: first, using: &random)
    func cost(_ position: Int) -> Double {
      let entry = entries[position]
      // Without known scores, the load alone decides.
      let score = if case .known(let score) = entry.standing { Double(max(score, 1)) } else { 1.0 }
      return score * Double(inFlight(entry.index) + 1)
    }
    let (a, b) = (cost(first), cost(second))
    return a == b ? min(first, second) : a < b ? first : second
  }

  /// Draws one of the first `count` entries by weight, but not the one at position `other`.
  private func drawn(of count: Int, without other: Int?, using random: inout SplitMix64) -> Int {
    var total = 0
    for position in 0..<count where position != other { total += entries[position].weight }
    var rest = Int(random.below(UInt64(max(total, 1))))
    for position in 0..<count where position != other {
      rest -= entries[position].weight
      if rest < 0 { return position }
    }
    return other == 0 ? 1 : 0
  }
}
