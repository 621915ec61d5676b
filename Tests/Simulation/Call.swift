import NetOptCore

/// A request under way, with the race of its current attempt.
final class Call {
  static let limit = Duration.seconds(60)
  /// How long the client waits for a response before it retries the request at another endpoint.
  static let responseTimeout = Duration.seconds(5)
  static let mostAttempts = 4

  let number: Int
  let client: Int
  let started: MonotonicInstant
  /// Whether the request requires a verified certificate.
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
  /// The number of legs that failed or lost, over all attempts.
  var detours = 0
  /// When the current attempt sent its request; `nil` unless the attempt waits for its response.
  var sentAt: MonotonicInstant?
  /// Whether a retry was needed but the retry budget was used up.
  var lacksBudget = false
  /// When the first connection was ready.
  var readyAt: MonotonicInstant?
  /// The number of servers that seem to work for this call but do not: the server answers 503, or the
  /// client's connection to the server has died silently.
  var hiddenFailures = 0
  /// Whether the plan holds the single attempt of a half-open endpoint.
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

  /// Whether an event belongs to the current attempt.
  func isCurrent(_ attempt: Int) -> Bool { !isOver && attempt == self.attempt }

  func change(_ leg: Int, _ body: (inout RouteReport.Leg) -> Void) {
    guard let index = reports.firstIndex(where: { $0.index == leg }) else { return }
    body(&reports[index])
  }

  /// The report of the current attempt. As in the client, a look-up that produced legs is not in the report.
  var report: RouteReport { RouteReport(plan: plan, legs: reports) }
}
