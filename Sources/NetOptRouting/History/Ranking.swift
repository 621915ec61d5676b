import NetOptCore

/// The order of a host's endpoints.
///
/// Endpoints that are known to work come first, the fastest first. Endpoints of unknown speed follow, the
/// nearest first. Endpoints that failed recently come last. The order is total: when all other properties are
/// equal, the list's order decides. The ranking is kept between requests, and moves an endpoint when
/// something about it was learned.
struct Ranking: Sendable {
  /// The first criterion for an endpoint's place. The cases are in the order of the ranking.
  enum Standing: Hashable, Comparable, Sendable {
    /// Known to work; with its score in nanoseconds.
    case known(Int64)
    /// Without a measured connection time and without a recent failure.
    case unknown
    /// Failed recently; with its score in nanoseconds, penalties included.
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
    /// The first criterion for the place.
    let standing: Standing
    // Small types, because each plan copies the entries.
    private let smallIndex: Int32
    private let smallWeight: Int16
    private let smallDistance: Int8

    /// The endpoint's index in the list.
    var index: Int { Int(smallIndex) }
    /// The distance to this machine, 0 to 2: 1 when the region is not known to be the same, plus 1 when the
    /// provider is not known to be the same.
    var distance: Int { Int(smallDistance) }
    /// The endpoint's weight in the list. Of two entries that are equal otherwise, the one with the greater
    /// weight comes first.
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

  /// The minimum gain in nanoseconds. Another endpoint replaces the endpoint in use only when its score is
  /// lower by more than `smallestGain` and by more than `smallestGainPercent`, because the change costs new
  /// connections.
  static let smallestGain: Int64 = 5_000_000
  /// The minimum gain in percent of the score of the endpoint in use.
  static let smallestGainPercent: Int64 = 15
  /// Endpoints share the load of the fastest endpoint when their scores exceed its score by at most this many
  /// percent.
  static let spreadPercent: Int64 = 10

  /// The entries in order.
  private(set) var entries: [Entry]

  /// Ranks endpoints.
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

  /// The position of an endpoint, by its index in the list.
  func position(of index: Int) -> Int? { entries.firstIndex { $0.index == index } }

  // MARK: Choosing the first endpoint

  /// The position of the endpoint to try first: the fastest one, or the endpoint in use as long as no other
  /// is clearly better. Among the endpoints within 10 % of the fastest, the client's draw decides.
  ///
  /// - Parameters:
  ///   - leader: the index of the endpoint in use.
  ///   - draw: the random number by which this client chooses among endpoints of about the same speed.
  ///   - isSticky: whether the endpoint in use keeps its place, however much better another one is.
  func front(leader: Int?, draw: UInt64, isSticky: Bool = false) -> Int {
    guard case .known(let best) = entries.first?.standing else { return 0 }
    if let leader, let position = position(of: leader), case .known(let score) = entries[position].standing,
      isSticky || score - best <= max(Self.smallestGain, score * Self.smallestGainPercent / 100)
    {
      return position
    }
    // The draw follows the list's order, so that small changes of speed do not change the choice.
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

  /// Draws two endpoints by weight and returns the position of the better one, which has the smaller product
  /// of score and number of requests under way. The number includes the next request. Draws among the
  /// endpoints that are known to work or, if there are none, among those of unknown speed.
  ///
  /// - Parameter inFlight: the number of requests that an endpoint has under way, by its index in the list.
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
