import NetOptCore

/// The order of a host's endpoints.
///
/// Those that are known to work come first, fastest first; then those of which nothing is known, nearest first; then
/// those that failed of late. The order is total: of two endpoints one always comes first, and in the end it is the
/// list's order that says which. It is kept, and an endpoint of which something was learnt is moved in it.
struct Ranking: Sendable {
  /// What an endpoint's place depends on before anything else. The cases are in their order.
  enum Standing: Hashable, Comparable, Sendable {
    /// Its score, in nanoseconds.
    case known(Int64)
    case unknown
    /// Its score with the penalty for its failures.
    case penalised(Int64)

    /// The score, when there is one.
    var score: Duration? {
      switch self {
      case .known(let score), .penalised(let score): .nanoseconds(score)
      case .unknown: nil
      }
    }
  }

  /// An endpoint that is ranked.
  struct Entry: Hashable, Comparable, Sendable {
    let standing: Standing
    // Small: the entries are copied with each plan.
    private let smallIndex: Int32
    private let smallWeight: Int16
    private let smallDistance: Int8

    /// Its index in the list.
    var index: Int { Int(smallIndex) }
    /// In how many respects, of region and provider, it is not where this machine is.
    var distance: Int { Int(smallDistance) }
    var weight: Int { Int(smallWeight) }

    init(index: Int, standing: Standing, distance: Int, weight: Int) {
      self.standing = standing
      smallIndex = Int32(clamping: index)
      smallWeight = Int16(clamping: weight)
      smallDistance = Int8(clamping: distance)
    }

    static func < (a: Entry, b: Entry) -> Bool {
      // Written out, the usual case first: it is asked for often.
      if case .known(let one) = a.standing, case .known(let other) = b.standing, one != other {
        return one < other
      }
      return (a.standing, a.distance, b.weight, a.index) < (b.standing, b.distance, a.weight, b.index)
    }
  }

  /// By how much an endpoint must be better than the one in use to take its place. Changing costs new connections.
  static let smallestGain: Int64 = 5_000_000
  static let smallestGainPercent: Int64 = 15
  /// How much slower than the fastest an endpoint may be to share its load.
  static let spreadPercent: Int64 = 10

  /// The entries in their order.
  private(set) var entries: [Entry]

  /// Ranks endpoints.
  init(_ entries: [Entry] = []) { self.entries = entries.sorted() }

  // MARK: Keeping it

  /// Puts an endpoint where it belongs.
  mutating func place(_ entry: Entry) {
    guard var position = position(of: entry.index) else {
      entries.insert(entry, at: entries.firstIndex { entry < $0 } ?? entries.endIndex)
      return
    }
    // Those between its old place and its new one move up.
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

  /// Takes an endpoint out.
  mutating func remove(_ index: Int) {
    if let position = position(of: index) { entries.remove(at: position) }
  }

  /// The position of an endpoint, by its index in the list.
  func position(of index: Int) -> Int? { entries.firstIndex { $0.index == index } }

  // MARK: Who is in front

  /// The position of the fastest one, or of the one in use as long as none is clearly better. Among those within 10 %
  /// of the fastest the client's draw decides.
  ///
  /// - Parameters:
  ///   - leader: the index of the endpoint that is in use.
  ///   - draw: the random number by which this client chooses among endpoints that are equally fast.
  ///   - isSticky: whether the one in use keeps its place, however much better another one is.
  func front(leader: Int?, draw: UInt64, isSticky: Bool = false) -> Int {
    guard case .known(let best) = entries.first?.standing else { return 0 }
    if let leader, let position = position(of: leader), case .known(let score) = entries[position].standing,
      isSticky || score - best <= max(Self.smallestGain, score * Self.smallestGainPercent / 100)
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

  /// The position of the better one of two that are drawn by weight: the one whose score times the requests that it
  /// would have under way is smaller. Drawn among those that are known to work or, when there is none, among those of
  /// which nothing is known.
  ///
  /// - Parameter inFlight: how many requests an endpoint has under way, by its index in the list.
  func betterOfTwo(inFlight: (Int) -> Int, using random: inout SplitMix64) -> Int {
    let isKnown = { (entry: Entry) in if case .known = entry.standing { true } else { false } }
    let known = entries.prefix(while: isKnown).count
    let count = known > 0 ? known : entries.prefix { $0.standing == .unknown }.count
    guard count > 1 else { return 0 }
    let first = drawn(of: count, without: nil, using: &random)
    let second = drawn(of: count, without: first, using: &random)
    func cost(_ position: Int) -> Double {
      let entry = entries[position]
      // Where nothing is known the load alone decides.
      let score = if case .known(let score) = entry.standing { Double(max(score, 1)) } else { 1.0 }
      return score * Double(inFlight(entry.index) + 1)
    }
    let (a, b) = (cost(first), cost(second))
    return a == b ? min(first, second) : a < b ? first : second
  }

  /// Draws one of the first entries by weight.
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
