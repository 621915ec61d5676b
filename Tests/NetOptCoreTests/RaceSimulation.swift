import NetOptCore

/// One race in simulated time. Its legs open sockets, connect, become ready, fail or give answers at random
/// moments, and its timer may be late. The simulation passes each event to a `Race` and to a `RaceModel`. It
/// records each difference between the two. A leg is named by its index in `Race.legs`.
struct RaceSimulation {
  /// What happens to a leg: it opens a socket, its TCP connection is established, its connection is ready to
  /// send the request, it fails, or its look-up has found these legs. `alarm` belongs to no leg: the race's
  /// timer with this number fires.
  private enum Event { case opened, connected, ready, failed, resolved([RoutePlan.Leg]), alarm(Int) }

  /// The situations that the test counts. Each must occur, because a situation that never occurs leaves a
  /// rule of the race untested.
  ///
  /// - `won`: a leg won the race.
  /// - `exhausted`: all legs failed.
  /// - `bothSourcesFull`: three legs of the list and three of DNS were under way at once.
  /// - `extended`: the front leg's stagger was extended, because TCP was connected.
  /// - `startedByTime`: the front leg's stagger passed, and another leg was free to start.
  /// - `lookUpStartedByTime`: the look-up started out of turn, 1 s after the first socket opened.
  /// - `lookUpStartedBeforeTheList`: the look-up started while legs of the list waited in the queue.
  /// - `startedAlone`: a leg that `startsAlone` started.
  /// - `lookUpFailedBeforeTheList`: the look-up failed while legs waited in the queue.
  /// - `answerStartedBeforeTheList`: the leg of an answer started while legs of the list waited in the queue.
  /// - `listedLegDropped`: a waiting leg of the list was dropped, because the look-up found its address.
  /// - `blockedLegPassedOver`: a leg started that was not the first in the queue. The legs before it were not
  ///   allowed to start.
  enum Occasion: CaseIterable {
    case won, exhausted, bothSourcesFull, extended, startedByTime, lookUpStartedByTime,
      lookUpStartedBeforeTheList, startedAlone
    case lookUpFailedBeforeTheList, answerStartedBeforeTheList, listedLegDropped, blockedLegPassedOver
  }

  /// The differences between the race and the model, in words.
  private(set) var faults: [String] = []
  /// How often each situation occurred.
  private(set) var occasions: [Occasion: Int] = [:]

  private var random: SplitMix64
  private var race: Race
  private var model: RaceModel
  /// The leg that the gate let send the request; `nil` while no leg has won.
  private var winner: Int?
  /// Whether the request may be sent again. If true, the gate also lets the winner send at later visits.
  private let mayBeRepeated: Bool
  /// The maximum lateness of the timer, in milliseconds.
  private let lateness: Int
  /// The present moment of the simulated clock.
  private var now = MonotonicInstant.at(0)
  /// The events to come, in no order. The leg of an alarm is -1.
  private var agenda: [(at: MonotonicInstant, leg: Int, event: Event)] = []
  /// The number of the alarm that the race set last. Alarms with earlier numbers have no effect.
  private var alarm = 0
  /// Whether the race has returned `Race.Step.exhausted`.
  private var isExhausted = false

  /// Creates a race with random legs and settings.
  init(_ random: inout SplitMix64) {
    self.random = SplitMix64(seed: random.next())
    let slowest = random.chance(30) ? 2000 : 600
    var legs = (0..<random.number(in: 0...8)).map {
      RoutePlan.Leg.listed($0, stagger: random.number(in: 0...slowest))
    }
    if legs.isEmpty || random.chance(80) {
      legs.insert(.lookUp, at: random.chance(80) ? legs.count : random.number(in: 0...legs.count))
    }
    if random.chance(60) {
      legs += (9..<random.number(in: 10...12)).map {
        RoutePlan.Leg.listed($0, stagger: slowest).startingAlone
      }
    }
    let startsTwo = random.chance(25)
    let multiplexes = random.chance(70)
    mayBeRepeated = random.chance(50)
    lateness = random.chance(30) ? 400 : 0
    race = Race(legs, startsTwo: startsTwo, multiplexes: multiplexes, mayBeRepeated: mayBeRepeated)
    model = RaceModel(legs, startsTwo: startsTwo, multiplexes: multiplexes)
  }

  /// Runs the race until no event is left.
  mutating func run() {
    advance()
    while let next = agenda.indices.min(by: { agenda[$0].at < agenda[$1].at }) {
      let (at, leg, event) = agenda.remove(at: next)
      now = at
      handle(event, of: leg)
      check()
    }
    expect((winner != nil) != isExhausted, "the race has not ended, or in two ways")
    expect(winner != nil || model.queue.isEmpty, "the legs \(model.queue) were left out")
    note(winner == nil ? .exhausted : .won)
  }

  /// Records a fault if a condition does not hold.
  private mutating func expect(_ isFine: Bool, _ fault: String) {
    if !isFine { faults.append("at \(now.nanoseconds / 1_000_000) ms: \(fault)") }
  }

  /// Counts a situation if it has occurred.
  private mutating func note(_ occasion: Occasion, if happened: Bool = true) {
    if happened { occasions[occasion, default: 0] += 1 }
  }

  /// Checks the conditions that hold after every event.
  private mutating func check() {
    expect(race.winner == winner, "the winner is \(race.winner ?? -1)")
    expect(race.front == model.front, "in front is \(race.front ?? -1)")
    expect(race.legs == model.legStates.map(\.leg), "the legs are others")
    guard winner == nil else { return }
    let latest = Duration.milliseconds(lateness)
    if let due = model.lookUpDue { expect(now <= due + latest, "the look-up has not started") }
    if let due = model.frontDue { expect(now <= due + latest, "leg \(model.front ?? -1) has had its time") }
    expect(model.underWay(.list) <= 3, "\(model.underWay(.list)) legs of the list are under way")
    // A look-up that is due starts although three other legs are under way.
    expect(model.underWay(.dns) <= 3, "\(model.underWay(.dns)) legs of DNS are under way")
    expect(model.underWay() > 0 || isExhausted, "nothing is under way")
    note(.bothSourcesFull, if: model.underWay(.dns) == 3 && model.underWay(.list) == 3)
  }

  // MARK: Steps of the race

  /// Calls `Race.advance`, which starts the first leg, or the first two legs. Checks and performs the step.
  private mutating func advance() {
    let isDue = model.initialStartsLeft > 0 && model.next != nil && winner == nil
    let step = race.advance()
    expect(isDue == (step == model.next.map { .start($0) }), "\(step) at the outset")
    follow(step)
  }

  /// Checks a step of the race against the model and performs it: starts a leg, or sets the timer.
  private mutating func follow(_ step: Race.Step) {
    switch step {
    case .start(let leg):
      expect(leg == model.next, "leg \(leg) was started, not \(model.next ?? -1)")
      start(leg)
    case .wait(let moment):
      alarm += 1
      let due = winner == nil ? [model.frontDue, model.lookUpDue].compactMap(\.self).min() : nil
      expect(moment == due, "the timer is set to \(moment as Any), not \(due as Any)")
      if let moment {
        agenda.append((max(now, moment + random.milliseconds(0...lateness)), -1, .alarm(alarm)))
      }
    case .exhausted:
      expect(model.underWay() == 0 && model.queue.isEmpty, "given up too early")
      expect(!isExhausted, "exhausted twice")
      isExhausted = true
      alarm += 1
    }
  }

  /// Checks that a leg may start, starts it in the model, and plans its events.
  private mutating func start(_ leg: Int) {
    let (target, source) = (model.legStates[leg].leg.target, model.legStates[leg].leg.source)
    let isListLeft = model.queue.contains { model.legStates[$0].leg.source == .list }
    expect(winner == nil, "leg \(leg) was started after the race")
    expect(!model.hasStarted(target), "leg \(leg) leads where another one did")
    note(.blockedLegPassedOver, if: model.queue.first != leg)
    note(.startedAlone, if: model.legStates[leg].leg.startsAlone)
    expect(
      !model.legStates[leg].leg.startsAlone || model.underWay() == 0,
      "a leg that starts alone was started beside others")
    model.start(leg)
    if model.isLookUp(leg) {
      note(.lookUpStartedBeforeTheList, if: isListLeft)
      plan(leg, outcomeOfLookUp(), after: 0...1500)
    } else {
      note(.answerStartedBeforeTheList, if: source == .dns && isListLeft)
      // A leg that opens no socket waits for a stream on a ready connection. Some legs open two sockets.
      if random.chance(80) { plan(leg, .opened, after: 0...100) }
      if random.chance(20) { plan(leg, .opened, after: 100...1000) }
      if random.chance(50) { plan(leg, .connected, after: 100...800) }
      plan(leg, random.chance(15) ? .ready : .failed, after: 100...(random.chance(40) ? 10_000 : 1000))
    }
    if random.chance(5) { handle(.failed, of: leg) } else { advance() }
  }

  // MARK: Random events

  /// Plans an event of a leg for a random moment in a range, in milliseconds from now.
  private mutating func plan(_ leg: Int, _ event: Event, after range: ClosedRange<Int>) {
    agenda.append((now + random.milliseconds(range), leg, event))
  }

  /// A random outcome of a look-up: a failure, or up to 6 answers, some of which the list may have too.
  private mutating func outcomeOfLookUp() -> Event {
    if random.chance(20) { return .failed }
    var answers: [RoutePlan.Leg] = []
    for _ in 0..<random.number(in: 0...6) {
      answers.append(.answer(random.number(in: 0...12), stagger: random.number(in: 0...600)))
    }
    return .resolved(answers)
  }

  /// Passes an event to the race and to the model, and compares what both do.
  private mutating func handle(_ event: Event, of leg: Int) {
    switch event {
    case .opened:
      if winner == nil { model.opened(leg, at: now) }
      follow(race.opened(leg, at: now))
    case .connected: model.connected(leg)
    case .ready: ready(leg)
    case .failed:
      note(.lookUpFailedBeforeTheList, if: model.isLookUp(leg) && !model.queue.isEmpty)
      let isFirst = !model.legStates[leg].isOver
      model.ended(leg)
      ended(race.failed(leg), isFirst)
    case .resolved(let answers):
      // The caller of the look-up ignores its answers when the leg is over.
      guard winner == nil, !model.legStates[leg].isOver else { return }
      let untried = model.untried(answers)
      expect(race.untried(answers) == untried, "other answers are new")
      model.ended(leg)
      note(.listedLegDropped, if: model.expanded(into: untried) > 0)
      ended(race.expanded(leg, into: untried), true)
    case .alarm(let number):
      if number == alarm { timeIsUp() }
    }
  }

  /// Checks the step of the race after a leg has ended, and performs it. The race must start the next leg at
  /// once, unless a leg has won or no leg may start.
  ///
  /// - Parameter isFirst: whether the end is reported for the first time. The race ignores a second report.
  private mutating func ended(_ step: Race.Step, _ isFirst: Bool) {
    let isDue = winner == nil && isFirst && model.next != nil
    expect(isDue == (step == model.next.map { .start($0) }), "\(step) after a failure")
    follow(step)
  }

  /// Sends a leg to the gate and checks the gate's answer. The first leg at the gate wins.
  private mutating func ready(_ leg: Int) {
    let verdict = race.ready(leg)
    guard winner == nil, !model.legStates[leg].isOver else {
      expect(verdict == .release, "a second leg may send, or one that is over")
      return
    }
    expect(verdict == .send, "the first that was ready may not send")
    winner = leg
    expect(race.ready(leg) == (mayBeRepeated ? .send : .replayRefused), "the replay")
  }

  /// Lets the race's timer fire, and checks and performs the step of the race.
  private mutating func timeIsUp() {
    let isConnected = model.front.map { model.legStates[$0].isConnected } ?? false
    let step = race.timeIsUp(at: now, connected: isConnected)
    if winner != nil {
      follow(step)
    } else if let due = model.lookUpDue, now >= due, let lookUp = model.lookUp {
      note(.lookUpStartedByTime)
      expect(step == .start(lookUp), "\(step) when the look-up was due")
      start(lookUp)
    } else if let due = model.frontDue, now >= due {
      if isConnected, !model.frontIsExtended {
        note(.extended)
        model.frontIsExtended = true
        expect(step != model.next.map { .start($0) }, "leg \(model.front ?? -1) was not given longer")
      } else {
        note(.startedByTime, if: model.next != nil)
        model.frontIsOver = true
        expect(model.next == nil || step == model.next.map { .start($0) }, "\(step) although time was up")
      }
      follow(step)
    } else {
      expect(false, "an alarm without a reason")
    }
  }
}
