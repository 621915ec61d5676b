/// The race between the legs of a plan: which leg starts when, and which one may send the request.
///
/// A state machine without I/O. Whoever performs the plan tells it what happened and does what it answers; the gate
/// (`ready`) is asked when a leg's connection is ready and before a byte of the request is sent. The first leg to get
/// there wins; so a request is sent once, and the winner is who finished TLS first.
///
/// The leg in front is the one that started last of those that connect. When it has had its time, or any leg fails,
/// the next one starts: the first of those left whose source, list or DNS, has fewer than three under way. A leg that
/// is a plan's last resort starts when nothing is under way.
///
/// The look-up is the last leg, but it does not wait for ever: when nothing is ready a second after the first leg opened
/// its socket, it starts beside whatever is under way. A list full of addresses that swallow packets costs that second
/// at most. What the look-up gives is tried before what is left of the list.
@usableFromInline
package struct Race: Sendable {
  /// What is to be done next.
  package enum Step: Equatable, Sendable {
    /// Start the leg with this index.
    case start(Int)
    /// Wait for what is under way; look again at this moment, when one is given. It may have passed already.
    case wait(until: MonotonicInstant?)
    /// Every leg has failed.
    case exhausted
  }

  /// The gate's answer to a leg that is ready.
  package enum Verdict: Equatable, Sendable {
    /// The leg has won: send the request.
    case send
    /// Another leg has won: give the connection back.
    case lost
    /// The request has been sent once and may not be repeated: end the transfer.
    case replayRefused
  }

  /// The most legs from one source, list or DNS, that are under way at once.
  package static let width = 3
  /// How long after the first leg's socket was opened the look-up starts at the latest.
  package static let lookUpDelay = Duration.seconds(1)
  /// The indices of the legs of all but very long plans, shared by their races.
  private static let order = Array(0..<64)
  /// The most by which a leg whose TCP connection is up is given longer.
  static let longestExtension = Duration.milliseconds(250)

  /// How far the time of the leg in front has got.
  private enum Clock {
    case notStarted
    case running(until: MonotonicInstant, isExtended: Bool)
    case over
  }

  /// The legs by their index: those of the plan, and then those that a look-up gave.
  package private(set) var legs: [RoutePlan.Leg]
  /// The legs that have not started, in the order in which they will.
  private var queue: ArraySlice<Int>
  /// The legs that have started and not ended.
  @usableFromInline var underWay = Legs()
  /// How many of the legs that start without a reason, one or a pair, have not been started.
  private var unprovoked: Int
  /// The leg that is in front. A look-up never is: it opens no socket, so its time would never run.
  package private(set) var front: Int?
  private var clock = Clock.notStarted
  /// The look-up, until it starts.
  private var lookUp: Int?
  /// When it starts out of its turn.
  private var lookUpDue: MonotonicInstant?
  @usableFromInline let mayBeRepeated: Bool
  private let patience: Int
  /// Where legs lead that were tried once more when all others had failed.
  private var triedLast: [RoutePlan.Leg.Target] = []

  /// The leg that won, when there is one.
  @usableFromInline package private(set) var winner: Int?

  /// Makes the race for a plan.
  ///
  /// - Parameter mayBeRepeated: whether the request may be sent again on a new connection when the one that carried
  ///   it died before an answer began.
  package init(_ plan: RoutePlan, mayBeRepeated: Bool) {
    self.init(
      plan.legs, startsTwo: plan.startsTwo, multiplexes: plan.multiplexes, mayBeRepeated: mayBeRepeated)
  }

  /// Makes the race of some legs.
  package init(_ legs: [RoutePlan.Leg], startsTwo: Bool, multiplexes: Bool, mayBeRepeated: Bool) {
    self.legs = legs
    queue = Self.queue(of: legs.count)
    unprovoked = startsTwo ? 2 : 1
    lookUp = legs.firstIndex { $0.target == .dns }
    self.mayBeRepeated = mayBeRepeated
    // Aborting a leg at the gate closes an HTTP/1.1 connection, even a healthy pooled one: be slower to start one.
    patience = multiplexes ? 1 : 2
  }

  private static func queue(of count: Int) -> ArraySlice<Int> {
    count <= order.count ? order[..<count] : Array(0..<count)[...]
  }

  /// Puts a leg before all others, in the place of the one that leads to the same target. It starts alone.
  ///
  /// - Precondition: no leg has started.
  package mutating func putFirst(_ leg: RoutePlan.Leg) {
    precondition(front == nil && underWay.isEmpty, "the order of legs is settled before the first one starts")
    var reordered: [RoutePlan.Leg] = []
    reordered.reserveCapacity(legs.count + 1)
    reordered.append(leg)
    for other in legs where other.target != leg.target { reordered.append(other) }
    legs = reordered
    queue = Self.queue(of: legs.count)
    unprovoked = 1
    lookUp = legs.firstIndex { $0.target == .dns }
  }

  /// Starts the race, and goes on after each leg that was started. Call it until it answers something else than
  /// `start`.
  package mutating func advance() -> Step {
    winner == nil && unprovoked > 0 ? startNext() : wait
  }

  /// A leg's socket was opened, or it has begun to wait for a connection that others are opening: from here its time
  /// runs. A leg that waits for a stream of a connection that is ready does not get here.
  package mutating func opened(_ leg: Int, at now: MonotonicInstant) -> Step {
    guard winner == nil, underWay.contains(leg) else { return wait }
    if lookUp != nil, lookUpDue == nil { lookUpDue = now + Self.lookUpDelay }
    if leg == front, case .notStarted = clock {
      clock = .running(until: now + legs[leg].stagger * patience, isExtended: false)
    }
    return wait
  }

  /// The moment that `wait` named has come.
  ///
  /// - Parameter connected: whether TCP is connected on the leg in front, so that TLS is under way. It is then given
  ///   longer, once.
  package mutating func timeIsUp(at now: MonotonicInstant, connected: Bool) -> Step {
    guard winner == nil else { return wait }
    if let lookUpDue, now >= lookUpDue, let place = queue.firstIndex(where: { $0 == lookUp }) {
      return start(at: place)
    }
    guard case .running(let due, let isExtended) = clock, now >= due, let front else { return wait }
    if connected, !isExtended {
      clock = .running(until: due + min(legs[front].stagger, Self.longestExtension), isExtended: true)
      return wait
    }
    clock = .over
    return startNext()
  }

  /// A leg's connection is ready: may it send the request? To be asked again when the leg is ready again.
  package mutating func ready(_ leg: Int) -> Verdict {
    if winner == leg { return mayBeRepeated ? .send : .replayRefused }
    guard winner == nil, underWay.contains(leg) else { return .lost }
    winner = leg
    return .send
  }

  /// What `ready` would say, without the leg's winning: whether it may send the request. Inlined: a race that belongs to an object would be
  /// copied for the call.
  @inlinable package func maySend(_ leg: Int) -> Bool {
    winner == leg ? mayBeRepeated : winner == nil && underWay.contains(leg)
  }

  /// Takes the request back from the winner, because it was not processed: nothing of it was written, or the server said so. The leg is
  /// under way again, and the request goes with whichever leg is ready next. Without effect when the leg is not the winner.
  package mutating func takeBack(from leg: Int) {
    guard winner == leg else { return }
    winner = nil
    underWay = Legs()
    underWay.append(leg)
    front = leg
    // Others start when the leg's new connection takes long.
    clock = .notStarted
    lookUpDue = nil
    unprovoked = 0
  }

  /// Has a leg tried once more when all others have failed, with another index. Without effect when it leads where one did that is tried
  /// again already, or was: nobody gets the request for ever.
  package mutating func tryAgainLast(_ leg: Int) {
    guard !triedLast.contains(legs[leg].target) else { return }
    triedLast.append(legs[leg].target)
    queue.append(legs.count)
    legs.append(legs[leg])
  }

  /// Has a leg begin anew before any other one starts, with another index. The connection that it waits for will not come about.
  package mutating func tryAgainNext(_ leg: Int) {
    queue.insert(legs.count, at: queue.startIndex)
    legs.append(legs[leg])
  }

  /// Whether there are legs that have not started, last resorts aside.
  package var hasUntried: Bool { queue.contains { !legs[$0].isLast } }
  /// Whether there are, and some lead to an address: a look-up may find none that is new.
  package var hasUntriedAddress: Bool { queue.contains { legs[$0].address != nil && !legs[$0].isLast } }

  /// A leg ended without winning. The next one starts at once.
  package mutating func failed(_ leg: Int) -> Step {
    // A leg that is over fails no second time: it would start one leg too many.
    guard winner == nil, let place = underWay.firstIndex(of: leg) else { return wait }
    underWay.remove(at: place)
    if leg == front { clock = .over }
    return startNext()
  }

  /// Those of a look-up's answers that lead where no leg has led yet.
  package func untried(_ answers: [RoutePlan.Leg]) -> [RoutePlan.Leg] {
    var tried = Set(Set(legs.indices).subtracting(queue).map { legs[$0].target })
    return answers.filter { tried.insert($0.target).inserted }
  }

  /// A look-up became legs with addresses, which are tried next, in their order, and in the place of legs of the list
  /// that lead to the same addresses. Their indices follow those of all legs there are.
  ///
  /// - Parameter answers: what `untried` left of the answers.
  package mutating func expanded(_ leg: Int, into answers: [RoutePlan.Leg]) -> Step {
    let targets = Set(answers.map(\.target))
    queue.removeAll { targets.contains(legs[$0].target) }
    queue.insert(contentsOf: legs.count..<(legs.count + answers.count), at: queue.startIndex)
    legs += answers
    return failed(leg)
  }

  private var wait: Step {
    if winner != nil { return .wait(until: nil) }
    guard case .running(let due, _) = clock else { return .wait(until: lookUpDue) }
    return .wait(until: min(due, lookUpDue ?? due))
  }

  private mutating func startNext() -> Step {
    // A source that has its share does not keep the other one waiting.
    if let place = queue.firstIndex(where: { !legs[$0].isLast && hasRoom(for: $0) }) {
      return start(at: place)
    }
    guard underWay.isEmpty else { return wait }
    return queue.isEmpty ? .exhausted : start(at: queue.startIndex)
  }

  private func hasRoom(for leg: Int) -> Bool {
    underWay.count(where: { legs[$0].source == legs[leg].source }) < Self.width
  }

  private mutating func start(at place: Int) -> Step {
    // The first one goes without a copy of the others.
    let leg = place == queue.startIndex ? queue.removeFirst() : queue.remove(at: place)
    underWay.append(leg)
    unprovoked = max(0, unprovoked - 1)
    if leg == lookUp {
      lookUp = nil
      lookUpDue = nil
    } else {
      front = leg
      clock = .notStarted
    }
    return .start(leg)
  }
}

/// The few legs that are under way, kept in place: a race allocates nothing.
@usableFromInline
struct Legs: Sendable {
  /// Three of each source, and the look-up.
  @usableFromInline var legs = InlineArray<8, Int>(repeating: -1)
  @usableFromInline private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  @inlinable func firstIndex(of leg: Int) -> Int? {
    for index in 0..<count where legs[index] == leg { return index }
    return nil
  }

  @inlinable func contains(_ leg: Int) -> Bool { firstIndex(of: leg) != nil }

  func count(where condition: (Int) -> Bool) -> Int {
    var found = 0
    for index in 0..<count where condition(legs[index]) { found += 1 }
    return found
  }

  mutating func append(_ leg: Int) {
    legs[count] = leg
    count += 1
  }

  mutating func remove(at index: Int) {
    count -= 1
    legs[index] = legs[count]
  }
}
