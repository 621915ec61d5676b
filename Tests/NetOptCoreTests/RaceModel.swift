import NetOptCore

/// A second implementation of the rules of a race, independent of the implementation in `Race`. The model
/// records what happened to each leg, and derives the next step from these records.
struct RaceModel {
  struct LegState {
    let leg: RoutePlan.Leg
    /// The moment at which the leg opened its socket, or `nil` if it was not the front leg then.
    var opened: MonotonicInstant?
    var isConnected = false
    var isOver = false
  }

  private(set) var legStates: [LegState]
  /// The legs that have not started, in starting order.
  private(set) var queue: [Int]
  private(set) var started: [Int] = []
  /// How many legs of the initial start (one, or two if `startsTwo`) have not started yet.
  private(set) var initialStartsLeft: Int
  /// The front leg. The next two properties say whether its stagger was extended and whether it is over.
  private(set) var front: Int?
  var frontIsExtended = false
  var frontIsOver = false
  private var firstOpened: MonotonicInstant?
  private let staggerMultiplier: Int

  init(_ legs: [RoutePlan.Leg], startsTwo: Bool, multiplexes: Bool) {
    legStates = legs.map { LegState(leg: $0) }
    queue = Array(legs.indices)
    initialStartsLeft = startsTwo ? 2 : 1
    staggerMultiplier = multiplexes ? 1 : 2
  }

  // MARK: Expected steps

  func isLookUp(_ leg: Int) -> Bool { legStates[leg].leg.target == .dns }

  func underWay(_ source: AddressSource? = nil) -> Int {
    started.count { !legStates[$0].isOver && (source == nil || legStates[$0].leg.source == source) }
  }

  /// The next leg: the first waiting leg whose source has fewer than three legs under way. A leg that
  /// starts alone is next only when no leg is under way and no other leg waits.
  var next: Int? {
    queue.first { !legStates[$0].leg.startsAlone && underWay(legStates[$0].leg.source) < 3 }
      ?? (underWay() == 0 ? queue.first : nil)
  }

  /// The end of the front leg's stagger.
  var frontDue: MonotonicInstant? {
    guard let front, !legStates[front].isOver, !frontIsOver, let opened = legStates[front].opened else {
      return nil
    }
    let stagger = legStates[front].leg.stagger
    return opened + stagger * staggerMultiplier + (frontIsExtended ? min(stagger, .milliseconds(250)) : .zero)
  }

  /// The look-up, if it has not started.
  var lookUp: Int? { queue.first(where: isLookUp) }

  var lookUpDue: MonotonicInstant? { lookUp == nil ? nil : firstOpened.map { $0 + .seconds(1) } }

  func hasStarted(_ target: RoutePlan.Leg.Target) -> Bool {
    started.contains { legStates[$0].leg.target == target }
  }

  /// The answers of a look-up whose targets no leg has tried, each target once.
  func untried(_ answers: [RoutePlan.Leg]) -> [RoutePlan.Leg] {
    answers.enumerated().filter { index, answer in
      !hasStarted(answer.target) && !answers[..<index].contains { $0.target == answer.target }
    }.map(\.element)
  }

  // MARK: Events

  mutating func start(_ leg: Int) {
    queue.removeAll { $0 == leg }
    started.append(leg)
    initialStartsLeft = max(0, initialStartsLeft - 1)
    if !isLookUp(leg) { (front, frontIsExtended, frontIsOver) = (leg, false, false) }
  }

  mutating func opened(_ leg: Int, at now: MonotonicInstant) {
    guard !legStates[leg].isOver else { return }
    firstOpened = firstOpened ?? now
    if leg == front { legStates[leg].opened = legStates[leg].opened ?? now }
  }

  mutating func connected(_ leg: Int) { legStates[leg].isConnected = true }

  mutating func ended(_ leg: Int) { legStates[leg].isOver = true }

  /// Puts the legs from a look-up first in the queue, and drops the waiting legs to the same addresses.
  ///
  /// - Returns: The number of dropped legs.
  mutating func expanded(into answers: [RoutePlan.Leg]) -> Int {
    let waiting = queue.count
    queue.removeAll { index in answers.contains { $0.target == legStates[index].leg.target } }
    let dropped = waiting - queue.count
    queue = Array(legStates.count..<(legStates.count + answers.count)) + queue
    legStates += answers.map { LegState(leg: $0) }
    return dropped
  }
}
