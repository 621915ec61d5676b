import NetOptCore

/// A simulated request, with the race of its current attempt.
final class Call {
  /// The time limit of a call, counted from its start.
  static let limit = Duration.seconds(60)
  /// How long an attempt waits for a response after it has sent the request. Then the attempt ends as
  /// `silent`, and the client may retry the request.
  static let responseTimeout = Duration.seconds(5)
  /// The maximum number of attempts of a call, the first one included.
  static let mostAttempts = 4

  /// The number of the request, from 1. All clients share one sequence.
  let number: Int
  /// The index of the client in `Simulation.clients`.
  let client: Int
  /// When the request arrived at the client.
  let started: MonotonicInstant
  /// Whether the request requires a verified certificate.
  let verifies: Bool
  /// The number of the current attempt, from 0.
  var attempt = 0
  /// The plan of the current attempt.
  var plan: RoutePlan
  /// The plan of the first attempt.
  let firstPlan: RoutePlan
  /// The race of the current attempt.
  var race: Race
  /// When the current attempt began. The times of its legs are offsets from this moment.
  var attemptStarted: MonotonicInstant
  /// The reports of the legs that the current attempt has started, in starting order.
  var reports: [RouteReport.Leg] = []
  /// The number of the current timer of the race. An alarm event with another number is outdated and has no
  /// effect.
  var alarmNumber = 0
  /// Whether the call has ended. Later events of the call have no effect.
  var isOver = false
  /// Not used.
  var lookUpLeg: Int?
  /// The number of detours so far, over all attempts: one for each leg that failed, one for each attempt that
  /// another leg than the first one won, and one for each retry.
  var detours = 0
  /// When the current attempt sent its request; `nil` unless the attempt waits for its response.
  var sentAt: MonotonicInstant?
  /// Whether a retry was needed but the retry budget was used up.
  var lacksBudget = false
  /// When a connection was first ready to carry the request; `nil` before.
  var readyAt: MonotonicInstant?
  /// The number of servers that, at the start of the call, seemed to work for its client but did not: the
  /// server answered 503, or the client's pooled connection to the server had died silently.
  var hiddenFailures = 0
  /// Whether the current plan begins with a half-open endpoint, so that the request makes the one attempt
  /// that the circuit breaker allows.
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

  /// Begins the next attempt.
  func begin(_ plan: RoutePlan, at now: MonotonicInstant) {
    attempt += 1
    self.plan = plan
    race = Race(plan, mayBeRepeated: true)
    attemptStarted = now
    reports = []
    alarmNumber += 1
  }

  /// Whether an event of the attempt with this number still matters: the call goes on, and this attempt is
  /// the current one.
  func isCurrent(_ attempt: Int) -> Bool { !isOver && attempt == self.attempt }

  /// Changes the report of a leg of the current attempt, if there is one.
  ///
  /// - Parameter leg: the index of the leg in the race.
  func change(_ leg: Int, _ body: (inout RouteReport.Leg) -> Void) {
    guard let index = reports.firstIndex(where: { $0.index == leg }) else { return }
    body(&reports[index])
  }

  /// The report of the current attempt. As in the client, a look-up that produced legs is not in the report.
  var report: RouteReport { RouteReport(plan: plan, legs: reports) }
}
