/// Decides, for the legs of one plan, when each leg starts and which leg may send the request.
///
/// `Race` is a state machine without I/O. The caller opens the connections. It reports events to the race and
/// carries out the `Step` that the race returns. When the connection of a leg is ready, the caller calls
/// `ready`, which is the gate, before the leg sends the first byte of the request. The first leg at the gate
/// wins. So only one leg sends the request: the leg that completed the TLS handshake first. If
/// the server did not process the request (`withdrawRequest`), the next leg that is ready sends it.
///
/// The front leg is the connecting leg that started last. Its stagger (`RoutePlan.Leg.stagger`) is the time
/// that it has before the race starts another leg beside it. When the stagger is over, or when any leg fails,
/// the race starts the next leg: the first waiting leg whose source (list or DNS) has fewer than three legs
/// under way. The race starts a leg that `startsAlone` only when no leg is under way.
///
/// The DNS look-up has its place among the plan's legs: normally after the legs to usable endpoints and
/// before the last resorts. But if no leg is ready 1 s after the first leg opened its socket, the look-up
/// starts out of turn, beside the legs under way. So a list full of addresses that drop packets delays a call
/// by 1 s at most. The race tries the addresses from the look-up before the remaining addresses of the list.
@usableFromInline
package struct Race: Sendable {
  /// What the caller does next.
  package enum Step: Equatable, Sendable {
    /// Start the leg with this index.
    case start(Int)
    /// Wait for events of the legs under way. If there is a moment, call `timeIsUp` at this moment, or at
    /// once if it is in the past.
    case wait(until: MonotonicInstant?)
    /// Stop: every leg has failed.
    case exhausted
  }

  /// The gate's answer to a leg that is ready.
  package enum Verdict: Equatable, Sendable {
    /// The leg has won. Send the request.
    case send
    /// The leg must not send the request: another leg has won, or the leg is over. Release the connection.
    case release
    /// The leg has sent the request before, and the request may not be repeated. End the transfer.
    case replayRefused
  }

  /// The maximum number of legs from one source (list or DNS) that are under way at once.
  package static let width = 3
  /// The latest start of the DNS look-up, counted from when the first leg opened its socket.
  package static let lookUpDelay = Duration.seconds(1)
  /// The leg indices `0..<64`. A race with at most 64 legs begins with a slice of this array as its queue, so
  /// that it allocates no array.
  private static let order = Array(0..<64)
  /// The maximum time that `timeIsUp` adds to the front leg's stagger when its TCP connection is established.
  static let longestExtension = Duration.milliseconds(250)

  /// The state of the front leg's stagger timer.
  private enum Clock {
    /// The front leg has not opened its socket.
    case notStarted
    /// The stagger ends at `until`. `isExtended` says whether it was extended, which happens at most once.
    case running(until: MonotonicInstant, isExtended: Bool)
    /// The stagger has ended, or the front leg has failed.
    case over
  }

  /// All legs, by index: first the legs of the plan, then the legs that look-ups and repeated tries added.
  package private(set) var legs: [RoutePlan.Leg]
  /// The indices in `legs` of the legs that have not started, in starting order.
  private var queue: ArraySlice<Int>
  /// The legs that have started and have not ended. Contains the winner.
  @usableFromInline var underWay = Legs()
  /// How many legs `advance` has still to start at the beginning of the race, without waiting for the
  /// stagger. At first 1, or 2 if the plan `startsTwo`.
  private var initialStartsLeft: Int
  /// The index of the front leg: the leg, other than the DNS look-up, that started last. The look-up never is
  /// the front leg, because a stagger begins when a socket opens and a look-up opens none. The front leg may
  /// have failed since. After `withdrawRequest`, it is the leg from which the request was taken. `nil` before
  /// the first start.
  package private(set) var front: Int?
  /// The stagger timer of the front leg.
  private var clock = Clock.notStarted
  /// The index of the DNS look-up; `nil` once it has started, and if there is none.
  private var lookUp: Int?
  /// When the DNS look-up starts out of turn. `nil` before the first leg has opened its socket, and after the
  /// look-up has started.
  private var lookUpDue: MonotonicInstant?
  /// Whether the request may be sent again on a new connection after the connection that carried it failed
  /// (`NetOptRequest.mayBeRepeated`).
  @usableFromInline let mayBeRepeated: Bool
  /// The factor for the stagger of each leg: 1, or 2 if a connection carries one request at a time.
  private let staggerMultiplier: Int
  /// The targets of the legs that `tryAgainLast` has queued. It queues each target only once.
  private var triedLast: [RoutePlan.Leg.Target] = []

  /// The index of the leg that won; `nil` while no leg has won.
  @usableFromInline package private(set) var winner: Int?

  /// Creates the race for a plan.
  ///
  /// - Parameter mayBeRepeated: whether the request may be sent again on a new connection after the
  ///   connection that carried it failed before a response began.
  package init(_ plan: RoutePlan, mayBeRepeated: Bool) {
    self.init(
      plan.legs, startsTwo: plan.startsTwo, multiplexes: plan.multiplexes, mayBeRepeated: mayBeRepeated)
  }

  /// Creates a race for the given legs. The parameters are the properties of `RoutePlan` with the same names,
  /// and `mayBeRepeated` of the other initializer.
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

  /// Returns the indices of `count` legs.
  private static func queue(of count: Int) -> ArraySlice<Int> {
    count <= order.count ? order[..<count] : Array(0..<count)[...]
  }

  /// Puts a leg before all others, and removes the leg of the plan with the same target. The race then begins
  /// with this one leg, even if the plan `startsTwo`.
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

  /// Returns the next step at the start of the race, and after a leg was started. Call this repeatedly until
  /// the result is not `start`.
  package mutating func advance() -> Step {
    winner == nil && initialStartsLeft > 0 ? startNext() : wait
  }

  /// Reports that a leg opened its socket, or began to wait for a connection that another transfer is
  /// opening. The leg's stagger begins at this moment. Do not report a leg that waits for a stream on a
  /// ready connection: it does not count as opened.
  package mutating func opened(_ leg: Int, at now: MonotonicInstant) -> Step {
    guard winner == nil, underWay.contains(leg) else { return wait }
    if lookUp != nil, lookUpDue == nil { lookUpDue = now + Self.lookUpDelay }
    if leg == front, case .notStarted = clock {
      clock = .running(until: now + legs[leg].stagger * staggerMultiplier, isExtended: false)
    }
    return wait
  }

  /// Reports that the moment of the last `Step.wait` has come.
  ///
  /// - Parameter connected: whether the front leg's TCP connection is established. If true, the race extends
  ///   the stagger of this leg, at most once, because only the TLS handshake is missing.
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

  /// The gate: reports that a leg's connection is ready, and decides whether the leg may send the request.
  /// The leg may become ready again on a new connection. Then call this again.
  package mutating func ready(_ leg: Int) -> Verdict {
    if winner == leg { return mayBeRepeated ? .send : .replayRefused }
    guard winner == nil, underWay.contains(leg) else { return .release }
    winner = leg
    return .send
  }

  /// Whether `ready` would return `send` for the leg. Does not change the race. Inlined, because a call from
  /// another module would copy a race that is stored in an object.
  @inlinable package func maySend(_ leg: Int) -> Bool {
    winner == leg ? mayBeRepeated : winner == nil && underWay.contains(leg)
  }

  /// Takes the request back from the winner, because the server did not process the request: no byte of it
  /// was written, or the server said that it did not process it. Afterwards no leg has won, only this leg is
  /// under way, and the next leg that is ready sends the request. Does nothing if the leg is not the winner.
  package mutating func withdrawRequest(from leg: Int) {
    guard winner == leg else { return }
    winner = nil
    underWay = Legs()
    underWay.append(leg)
    front = leg
    // The stagger begins again when the leg opens a new socket. If it passes, the race starts another leg.
    clock = .notStarted
    lookUpDue = nil
    initialStartsLeft = 0
  }

  /// Queues another try of a leg after all other legs. The new try gets a new index. Does nothing if
  /// this function has queued the target of the leg before. Otherwise a race might never end.
  package mutating func tryAgainLast(_ leg: Int) {
    guard !triedLast.contains(legs[leg].target) else { return }
    triedLast.append(legs[leg].target)
    queue.append(legs.count)
    legs.append(legs[leg])
  }

  /// Queues another try of a leg before all other legs. The new try gets a new index. Use this when a leg
  /// waited for connections of other transfers, and these connections turn out to be dead.
  package mutating func tryAgainNext(_ leg: Int) {
    queue.insert(legs.count, at: queue.startIndex)
    legs.append(legs[leg])
  }

  /// Whether a leg has not started yet. Does not count legs that start alone (`RoutePlan.Leg.startsAlone`).
  package var hasUntried: Bool { queue.contains { !legs[$0].startsAlone } }
  /// Whether a leg with an address has not started yet. Does not count legs that start alone. Does not count
  /// the DNS look-up either, because it may find no new address.
  package var hasUntriedAddress: Bool { queue.contains { legs[$0].address != nil && !legs[$0].startsAlone } }

  /// Reports that a leg ended without winning. The race then starts the next leg without waiting for a
  /// stagger.
  package mutating func failed(_ leg: Int) -> Step {
    // Count a leg's failure once. A second report would start one leg too many.
    guard winner == nil, let index = underWay.firstIndex(of: leg) else { return wait }
    underWay.remove(at: index)
    if leg == front { clock = .over }
    return startNext()
  }

  /// Returns those legs of a look-up's result whose targets no leg has tried. Removes repeated targets.
  package func untried(_ answers: [RoutePlan.Leg]) -> [RoutePlan.Leg] {
    var tried = Set(Set(legs.indices).subtracting(queue).map { legs[$0].target })
    return answers.filter { tried.insert($0.target).inserted }
  }

  /// Reports that the DNS look-up ended, and adds the legs that it found. The race starts these legs next, in
  /// their order. If a leg of the plan to one of these addresses has not started, the race drops that leg.
  /// The new legs get the indices after all existing legs.
  ///
  /// - Parameters:
  ///   - leg: the index of the look-up.
  ///   - answers: the legs that `untried` returned.
  package mutating func expanded(_ leg: Int, into answers: [RoutePlan.Leg]) -> Step {
    let targets = Set(answers.map(\.target))
    queue.removeAll { targets.contains(legs[$0].target) }
    queue.insert(contentsOf: legs.count..<(legs.count + answers.count), at: queue.startIndex)
    legs += answers
    return failed(leg)
  }

  /// The step that waits until the stagger ends or the look-up is due, whichever comes first.
  private var wait: Step {
    if winner != nil { return .wait(until: nil) }
    guard case .running(let due, _) = clock else { return .wait(until: lookUpDue) }
    return .wait(until: min(due, lookUpDue ?? due))
  }

  /// Starts the first leg in the queue that may start. If none may start, waits.
  private mutating func startNext() -> Step {
    // If one source has `width` legs under way, a leg of the other source can start.
    if let queueIndex = queue.firstIndex(where: { !legs[$0].startsAlone && hasRoom(for: $0) }) {
      return start(at: queueIndex)
    }
    guard underWay.isEmpty else { return wait }
    return queue.isEmpty ? .exhausted : start(at: queue.startIndex)
  }

  /// Whether fewer than `width` legs from the leg's source are under way.
  private func hasRoom(for leg: Int) -> Bool {
    underWay.count(where: { legs[$0].source == legs[leg].source }) < Self.width
  }

  /// Removes a leg from the queue and puts it under way.
  ///
  /// - Parameter queueIndex: the position of the leg in `queue`, not in `legs`.
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
  /// The indices, in the first `count` elements. There is room for three legs from each source and the DNS
  /// look-up.
  @usableFromInline var legs = InlineArray<8, Int>(repeating: -1)
  /// The number of legs under way.
  @usableFromInline private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  /// Returns the position of a leg among the legs under way; `nil` if the leg is not under way.
  @inlinable func firstIndex(of leg: Int) -> Int? {
    for index in 0..<count where legs[index] == leg { return index }
    return nil
  }

  @inlinable func contains(_ leg: Int) -> Bool { firstIndex(of: leg) != nil }

  /// Returns the number of legs under way whose index satisfies a condition.
  func count(where condition: (Int) -> Bool) -> Int {
    var found = 0
    for index in 0..<count where condition(legs[index]) { found += 1 }
    return found
  }

  mutating func append(_ leg: Int) {
    legs[count] = leg
    count += 1
  }

  /// Removes the leg at a position. Moves the last leg to the position, so the order changes.
  mutating func remove(at index: Int) {
    count -= 1
    legs[index] = legs[count]
  }
}
