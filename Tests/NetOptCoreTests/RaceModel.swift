import NetOptCore

/// A second implementation of the rules of a race, independent of `Race`. The model records what happened to
/// each leg. From these records it computes what the race must do next. `RaceSimulation` compares the race
/// with it. A leg is named by its index in `Race.legs`.
struct RaceModel {
  /// What happened to a leg.
  struct LegState {
    let leg: RoutePlan.Leg
    /// The moment at which the leg first opened a socket as the front leg, when its stagger began; `nil` if
    /// it has not opened one.
    var opened: MonotonicInstant?
    /// Whether the leg's TCP connection is established. The race then extends the stagger.
    var isConnected = false
    /// Whether the leg has ended without winning: it has failed, or it is a look-up that has its answers.
    var isOver = false
  }

  /// The states of the legs, in the order of `Race.legs`.
  private(set) var legStates: [LegState]
  /// The legs that have not started, in starting order.
  private(set) var queue: [Int]
  /// The legs that have started, in the order of their starts, including legs that are over.
  private(set) var started: [Int] = []
  /// How many legs the race must still start at its beginning, without waiting for a stagger. At first 1, or
  /// 2 if `startsTwo`.
  private(set) var initialStartsLeft: Int
  /// The front leg: the leg, other than a look-up, that started last. `nil` before the first start.
  private(set) var front: Int?
  /// Whether the stagger of the front leg was extended, which happens at most once.
  var frontIsExtended = false
  /// Whether the stagger of the front leg has passed. The leg itself may still be under way.
  var frontIsOver = false
  /// The moment at which a leg first opened a socket. The look-up starts 1 s later at the latest.
  private var firstOpened: MonotonicInstant?
  /// The factor for every stagger: 1 if connections multiplex, and 2 if not.
  private let staggerMultiplier: Int

  /// Creates the model of a race that has not begun. The parameters are those of `Race`.
  init(_ legs: [RoutePlan.Leg], startsTwo: Bool, multiplexes: Bool) {
    legStates = legs.map { LegState(leg: $0) }
    queue = Array(legs.indices)
    initialStartsLeft = startsTwo ? 2 : 1
    staggerMultiplier = multiplexes ? 1 : 2
  }

  // MARK: Expected steps

  func isLookUp(_ leg: Int) -> Bool { legStates[leg].leg.target == .dns }

  /// Returns the number of legs under way from a source; from both sources for `nil`.
  func underWay(_ source: AddressSource? = nil) -> Int {
    started.count { !legStates[$0].isOver && (source == nil || legStates[$0].leg.source == source) }
  }

  /// The leg that the race must start next: the first leg of the queue whose source has fewer than three legs
  /// under way. A leg that starts alone is next only when no leg is under way and only such legs are in the
  /// queue. `nil` if no leg may start.
  var next: Int? {
    queue.first { !legStates[$0].leg.startsAlone && underWay(legStates[$0].leg.source) < 3 }
      ?? (underWay() == 0 ? queue.first : nil)
  }

  /// The moment at which the front leg's stagger ends. `nil` if the stagger has not begun or has passed, or
  /// the leg is over.
  var frontDue: MonotonicInstant? {
    guard let front, !legStates[front].isOver, !frontIsOver, let opened = legStates[front].opened else {
      return nil
    }
    let stagger = legStates[front].leg.stagger
    return opened + stagger * staggerMultiplier + (frontIsExtended ? min(stagger, .milliseconds(250)) : .zero)
  }

  /// The look-up, if it has not started.
  var lookUp: Int? { queue.first(where: isLookUp) }

  /// The moment at which the look-up must start out of turn: 1 s after the first socket opened. `nil` if no
  /// socket has opened, or no look-up is left to start.
  var lookUpDue: MonotonicInstant? { lookUp == nil ? nil : firstOpened.map { $0 + .seconds(1) } }

  /// Whether a leg to a target has started.
  func hasStarted(_ target: RoutePlan.Leg.Target) -> Bool {
    started.contains { legStates[$0].leg.target == target }
  }

  /// Returns those answers of a look-up to whose targets no leg has started. If several answers have the same
  /// target, returns only the first of them.
  func untried(_ answers: [RoutePlan.Leg]) -> [RoutePlan.Leg] {
    answers.enumerated().filter { index, answer in
      !hasStarted(answer.target) && !answers[..<index].contains { $0.target == answer.target }
    }.map(\.element)
  }

  // MARK: Events

  /// Records that a leg started.
  mutating func start(_ leg: Int) {
    queue.removeAll { $0 == leg }
    started.append(leg)
    initialStartsLeft = max(0, initialStartsLeft - 1)
    if !isLookUp(leg) { (front, frontIsExtended, frontIsOver) = (leg, false, false) }
  }

  /// Records that a leg opened a socket.
  mutating func opened(_ leg: Int, at now: MonotonicInstant) {
    guard !legStates[leg].isOver else { return }
    firstOpened = firstOpened ?? now
    if leg == front { legStates[leg].opened = legStates[leg].opened ?? now }
  }

  /// Records that the TCP connection of a leg is established.
  mutating func connected(_ leg: Int) { legStates[leg].isConnected = true }

  /// Records that a leg ended without winning.
  mutating func ended(_ leg: Int) { legStates[leg].isOver = true }

  /// Puts the legs to the answers of a look-up at the front of the queue. Removes the waiting legs of the
  /// list that lead to one of these addresses.
  ///
  /// - Returns: the number of removed legs.
  mutating func expanded(into answers: [RoutePlan.Leg]) -> Int {
    let waiting = queue.count
    queue.removeAll { index in answers.contains { $0.target == legStates[index].leg.target } }
    let dropped = waiting - queue.count
    queue = Array(legStates.count..<(legStates.count + answers.count)) + queue
    legStates += answers.map { LegState(leg: $0) }
    return dropped
  }
}
