/// Decides, for the legs of one plan, when each leg starts and which leg may send the request.
///
/// `Race` is a state machine without I/O. The caller performs the plan: it reports events to the race and
/// carries out the `Step` that the race returns. A leg asks the gate (`ready`) when its connection is ready,
/// before it sends the first byte of the request. The first leg at the gate wins. So only one leg sends
/// the request: the leg that completed the TLS handshake first.
///
/// The front leg is the connecting leg that started last. When the front leg's stagger is over, or when any
/// leg fails, the race starts the next leg: the first waiting leg whose source (list or DNS) has fewer than
/// three legs under way. The race starts a leg that `startsAlone` only when no leg is under way.
///
/// The DNS look-up comes after the legs to usable endpoints and before the last resorts. Its wait is limited:
/// if no leg is ready 1 s after the first leg opened its socket, the look-up starts beside the legs that are
/// under way. So a list full of addresses that drop packets delays a call by 1 s at most. The race tries the
/// addresses from the look-up before the remaining addresses of the list.
@usableFromInline
package struct Race: Sendable {
  /// What the caller does next.
  package enum Step: Equatable, Sendable {
    /// Start the leg with this index.
    case start(Int)
    /// Wait for the legs under way. Call `timeIsUp` at this moment, if there is one; it may already be in the
    /// past.
    case wait(until: MonotonicInstant?)
    /// Every leg has failed.
    case exhausted
  }

  /// The gate's answer to a leg that is ready.
  package enum Verdict: Equatable, Sendable {
    /// The leg has won. Send the request.
    case send
    /// The leg must not send the request: another leg has won, or the leg is over. Release the connection.
    case release
    /// The request was already sent and may not be repeated. End the transfer.
    case replayRefused
  }

  /// The maximum number of legs from one source (list or DNS) that are under way at once.
  package static let width = 3
  /// The delay from the opening of the first leg's socket to the latest start of the DNS look-up.
  package static let lookUpDelay = Duration.seconds(1)
  /// The leg indices `0..<64`, shared by the races of all plans with at most 64 legs.
  private static let order = Array(0..<64)
  /// The maximum extension of the front leg's stagger when its TCP connection is established.
  static let longestExtension = Duration.milliseconds(250)

  /// The state of the front leg's stagger timer.
  private enum Clock {
    case notStarted
    case running(until: MonotonicInstant, isExtended: Bool)
    case over
  }

  /// All legs, by index: first the legs of the plan, then the legs that look-ups and repeated tries added.
  package private(set) var legs: [RoutePlan.Leg]
  /// The indices of the legs that have not started, in starting order.
  private var queue: ArraySlice<Int>
  /// The legs that have started and have not ended.
  @usableFromInline var underWay = Legs()
  /// How many legs of the initial start (one leg, or two if `startsTwo`) have not started yet.
  private var initialStartsLeft: Int
  /// The front leg. Never the DNS look-up: a look-up opens no socket, so its stagger timer would never start.
  package private(set) var front: Int?
  private var clock = Clock.notStarted
  /// The index of the DNS look-up, until it starts.
  private var lookUp: Int?
  /// When the DNS look-up starts ahead of its turn.
  private var lookUpDue: MonotonicInstant?
  @usableFromInline let mayBeRepeated: Bool
  private let staggerMultiplier: Int
  /// The targets of the legs that `tryAgainLast` has queued.
  private var triedLast: [RoutePlan.Leg.Target] = []

  /// The leg that won, or `nil`.
  @usableFromInline package private(set) var winner: Int?

  /// Creates the race for a plan.
  ///
  /// - Parameter mayBeRepeated: whether the request may be sent again on a new connection after the
  ///   connection that carried it failed before a response began.
  package init(_ plan: RoutePlan, mayBeRepeated: Bool) {
    self.init(
      plan.legs, startsTwo: plan.startsTwo, multiplexes: plan.multiplexes, mayBeRepeated: mayBeRepeated)
  }

  /// Creates a race for the given legs.
  package init(_ legs: [RoutePlan.Leg], startsTwo: Bool, multiplexes: Bool, mayBeRepeated: Bool) {
    self.legs = legs
    queue = Self.queue(of: legs.count)
    initialStartsLeft = startsTwo ? 2 : 1
    lookUp = legs.firstIndex { $0.target == .dns }
    self.mayBeRepeated = mayBeRepeated
    // A leg that loses at the gate closes its HTTP/1.1 connection, even a healthy pooled one. So double the
    // stagger.
    staggerMultiplier = multiplexes ? 1 : 2
  }

  private static func queue(of count: Int) -> ArraySlice<Int> {
    count <= order.count ? order[..<count] : Array(0..<count)[...]
  }

  /// Puts a leg first, replaces the leg with the same target, and starts the first leg alone.
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
    initialStartsLeft = 1
    lookUp = legs.firstIndex { $0.target == .dns }
  }

  /// Starts the race, or continues it after a leg was started. Call repeatedly until the result is not
  /// `start`.
  package mutating func advance() -> Step {
    winner == nil && initialStartsLeft > 0 ? startNext() : wait
  }

  /// Reports that a leg opened its socket, or began to wait for a connection that another transfer is
  /// opening. The leg's stagger runs from this moment. The caller does not report a leg that waits for a
  /// stream on a ready connection.
  package mutating func opened(_ leg: Int, at now: MonotonicInstant) -> Step {
    guard winner == nil, underWay.contains(leg) else { return wait }
    if lookUp != nil, lookUpDue == nil { lookUpDue = now + Self.lookUpDelay }
    if leg == front, case .notStarted = clock {
      clock = .running(until: now + legs[leg].stagger * staggerMultiplier, isExtended: false)
    }
    return wait
  }

  /// Reports that the moment named by `wait` has come.
  ///
  /// - Parameter connected: whether the front leg has an established TCP connection and is in the TLS
  ///   handshake. The race then extends that leg's stagger, once.
  package mutating func timeIsUp(at now: MonotonicInstant, connected: Bool) -> Step {
    guard winner == nil else { return wait }
    if let lookUpDue, now >= lookUpDue, let queueIndex = queue.firstIndex(where: { $0 == lookUp }) {
      return start(at: queueIndex)
    }
    guard case .running(let due, let isExtended) = clock, now >= due, let front else { return wait }
    if connected, !isExtended {
      clock = .running(until: due + min(legs[front].stagger, Self.longestExtension), isExtended: true)
      return wait
    }
    clock = .over
    return startNext()
  }

  /// Reports that a leg's connection is ready, and decides whether the leg may send the request. Call again
  /// each time the leg becomes ready.
  package mutating func ready(_ leg: Int) -> Verdict {
    if winner == leg { return mayBeRepeated ? .send : .replayRefused }
    guard winner == nil, underWay.contains(leg) else { return .release }
    winner = leg
    return .send
  }

  /// Whether `ready` would let the leg send the request. Does not make the leg the winner. Inlined: a call
  /// across modules would copy a race that is stored in an object.
  @inlinable package func maySend(_ leg: Int) -> Bool {
    winner == leg ? mayBeRepeated : winner == nil && underWay.contains(leg)
  }

  /// Takes the request back from the winner because the server did not process it: no byte was written, or
  /// the server said so. The leg is under way again, and the next leg that is ready sends the request. Does
  /// nothing if the leg is not the winner.
  package mutating func withdrawRequest(from leg: Int) {
    guard winner == leg else { return }
    winner = nil
    underWay = Legs()
    underWay.append(leg)
    front = leg
    // Other legs start if the leg's new connection takes too long.
    clock = .notStarted
    lookUpDue = nil
    initialStartsLeft = 0
  }

  /// Queues another try of a leg, under a new index, after all other legs. Does nothing if a leg with the
  /// same target was queued this way before, so that a race always ends.
  package mutating func tryAgainLast(_ leg: Int) {
    guard !triedLast.contains(legs[leg].target) else { return }
    triedLast.append(legs[leg].target)
    queue.append(legs.count)
    legs.append(legs[leg])
  }

  /// Queues another try of a leg, under a new index, before all other legs. Used when the connection that the
  /// leg waits for will not be established.
  package mutating func tryAgainNext(_ leg: Int) {
    queue.insert(legs.count, at: queue.startIndex)
    legs.append(legs[leg])
  }

  /// Whether a leg waits to start, apart from legs that start alone (`startsAlone`).
  package var hasUntried: Bool { queue.contains { !legs[$0].startsAlone } }
  /// Whether a leg with an address waits to start, apart from legs that start alone. The look-up does not
  /// count, because it may find no new address.
  package var hasUntriedAddress: Bool { queue.contains { legs[$0].address != nil && !legs[$0].startsAlone } }

  /// Reports that a leg ended without winning. Starts the next leg at once.
  package mutating func failed(_ leg: Int) -> Step {
    // Count a leg's failure once. A second report would start one leg too many.
    guard winner == nil, let index = underWay.firstIndex(of: leg) else { return wait }
    underWay.remove(at: index)
    if leg == front { clock = .over }
    return startNext()
  }

  /// The legs of a look-up's answer whose targets no started leg has.
  package func untried(_ answers: [RoutePlan.Leg]) -> [RoutePlan.Leg] {
    var tried = Set(Set(legs.indices).subtracting(queue).map { legs[$0].target })
    return answers.filter { tried.insert($0.target).inserted }
  }

  /// Replaces a look-up with legs for the addresses that it found. The race tries these legs next, in their
  /// order, and drops the list's waiting legs to the same addresses. The new legs get the indices after all
  /// existing legs.
  ///
  /// - Parameter answers: the legs that `untried` returned.
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
    // A source at its limit does not delay the legs of the other source.
    if let queueIndex = queue.firstIndex(where: { !legs[$0].startsAlone && hasRoom(for: $0) }) {
      return start(at: queueIndex)
    }
    guard underWay.isEmpty else { return wait }
    return queue.isEmpty ? .exhausted : start(at: queue.startIndex)
  }

  private func hasRoom(for leg: Int) -> Bool {
    underWay.count(where: { legs[$0].source == legs[leg].source }) < Self.width
  }

  private mutating func start(at queueIndex: Int) -> Step {
    // `removeFirst` on the slice copies no elements.
    let leg = queueIndex == queue.startIndex ? queue.removeFirst() : queue.remove(at: queueIndex)
    underWay.append(leg)
    initialStartsLeft = max(0, initialStartsLeft - 1)
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

/// The indices of the legs under way, stored inline so that a race allocates no memory for them.
@usableFromInline
struct Legs: Sendable {
  /// Three legs from each source, and the DNS look-up.
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
