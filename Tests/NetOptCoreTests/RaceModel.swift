import NetOptCore

/// What the rules of a race say, told apart from how `Race` keeps them: it knows what happened to each leg, and works
/// out from that what has to be next.
struct RaceModel {
  struct Runner {
    let leg: RoutePlan.Leg
    /// When it opened its socket, if it was in front then.
    var opened: MonotonicInstant?
    var isConnected = false
    var isOver = false
  }

  private(set) var runners: [Runner]
  /// The legs that have not started, in their order.
  private(set) var queue: [Int]
  private(set) var started: [Int] = []
  /// How many legs may still start without a reason.
  private(set) var atOutset: Int
  /// The leg in front, and whether it was given longer, and had its time.
  private(set) var front: Int?
  var frontIsExtended = false
  var frontIsOver = false
  private var firstOpened: MonotonicInstant?
  private let patience: Int

  init(_ legs: [RoutePlan.Leg], startsTwo: Bool, multiplexes: Bool) {
    runners = legs.map { Runner(leg: $0) }
    queue = Array(legs.indices)
    atOutset = startsTwo ? 2 : 1
    patience = multiplexes ? 1 : 2
  }

  // MARK: What has to be

  func isLookUp(_ leg: Int) -> Bool { runners[leg].leg.target == .dns }

  func underWay(_ source: AddressSource? = nil) -> Int {
    started.count { !runners[$0].isOver && (source == nil || runners[$0].leg.source == source) }
  }

  /// The leg whose turn it is: the first one whose source has fewer than three under way, and a last resort when nothing is under way and
  /// nothing else left.
  var next: Int? {
    queue.first { !runners[$0].leg.isLast && underWay(runners[$0].leg.source) < 3 }
      ?? (underWay() == 0 ? queue.first : nil)
  }

  /// When the leg in front will have had its time.
  var frontDue: MonotonicInstant? {
    guard let front, !runners[front].isOver, !frontIsOver, let opened = runners[front].opened else {
      return nil
    }
    let stagger = runners[front].leg.stagger
    return opened + stagger * patience + (frontIsExtended ? min(stagger, .milliseconds(250)) : .zero)
  }

  /// The look-up that has not started.
  var lookUp: Int? { queue.first(where: isLookUp) }

  var lookUpDue: MonotonicInstant? { lookUp == nil ? nil : firstOpened.map { $0 + .seconds(1) } }

  func hasStarted(_ target: RoutePlan.Leg.Target) -> Bool {
    started.contains { runners[$0].leg.target == target }
  }

  /// Those answers of a look-up that were not tried, each once.
  func news(_ answers: [RoutePlan.Leg]) -> [RoutePlan.Leg] {
    answers.enumerated().filter { index, answer in
      !hasStarted(answer.target) && !answers[..<index].contains { $0.target == answer.target }
    }.map(\.element)
  }

  // MARK: What happened

  mutating func start(_ leg: Int) {
    queue.removeAll { $0 == leg }
    started.append(leg)
    atOutset = max(0, atOutset - 1)
    if !isLookUp(leg) { (front, frontIsExtended, frontIsOver) = (leg, false, false) }
  }

  mutating func opened(_ leg: Int, at now: MonotonicInstant) {
    guard !runners[leg].isOver else { return }
    firstOpened = firstOpened ?? now
    if leg == front { runners[leg].opened = runners[leg].opened ?? now }
  }

  mutating func connected(_ leg: Int) { runners[leg].isConnected = true }

  mutating func ended(_ leg: Int) { runners[leg].isOver = true }

  /// A look-up gave legs, which come next. What leads to the same addresses is dropped.
  ///
  /// - Returns: how many were dropped.
  mutating func gave(_ news: [RoutePlan.Leg]) -> Int {
    let waiting = queue.count
    queue.removeAll { index in news.contains { $0.target == runners[index].leg.target } }
    let dropped = waiting - queue.count
    queue = Array(runners.count..<(runners.count + news.count)) + queue
    runners += news.map { Runner(leg: $0) }
    return dropped
  }
}
