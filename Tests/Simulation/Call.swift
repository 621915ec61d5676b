import NetOptCore

/// A request under way, with the race of its present attempt.
final class Call {
  static let limit = Duration.seconds(60)
  /// How long an answer is waited for before the request is sent elsewhere.
  static let patience = Duration.seconds(5)
  static let mostAttempts = 4

  let number: Int
  let client: Int
  let started: MonotonicInstant
  /// Whether it verifies certificates.
  let verifies: Bool
  var attempt = 0
  var plan: RoutePlan
  let firstPlan: RoutePlan
  var race: Race
  var attemptStarted: MonotonicInstant
  var reports: [RouteReport.Leg] = []
  var alarmNumber = 0
  var isOver = false
  var lookUpLeg: Int?
  /// How many legs failed or were overtaken, over all attempts.
  var detours = 0
  /// When the present attempt's request was sent, while it waits for its answer.
  var sentAt: MonotonicInstant?
  /// Whether it would have been sent once more, and the budget for retries was used up.
  var lacksBudget = false
  /// When the first connection was ready.
  var readyAt: MonotonicInstant?
  /// How many servers seem to work for it and do not: they answer 503, or a connection to them has died silently.
  var deceivers = 0
  /// Whether a half-open endpoint has its one attempt in it.
  var isAttempt = false

  init(_ number: Int, of client: Int, _ plan: RoutePlan, at now: MonotonicInstant) {
    self.number = number
    self.client = client
    self.plan = plan
    firstPlan = plan
    verifies = plan.verifies
    started = now
    attemptStarted = now
    race = Race(plan, mayBeRepeated: true)
  }

  func begin(_ plan: RoutePlan, at now: MonotonicInstant) {
    attempt += 1
    self.plan = plan
    race = Race(plan, mayBeRepeated: true)
    attemptStarted = now
    reports = []
    alarmNumber += 1
  }

  /// Whether an event is of the attempt that is under way.
  func isCurrent(_ attempt: Int) -> Bool { !isOver && attempt == self.attempt }

  func change(_ leg: Int, _ body: (inout RouteReport.Leg) -> Void) {
    guard let place = reports.firstIndex(where: { $0.index == leg }) else { return }
    body(&reports[place])
  }

  /// The report of the present attempt. A look-up that gave legs is not in it, as in the client's.
  var report: RouteReport { RouteReport(plan: plan, legs: reports) }
}
