import NetOptCore
import NetOptRouting

extension RetryPolicy.Outcome {
  /// The route of the attempt; `nil` when the attempt failed before it had a route.
  var route: RouteReport? {
    switch self {
    case .success(let response): response.route
    case .failure(let error): error.route
    }
  }

  /// The endpoint to which the attempt sent the request; `nil` when it sent nothing, or sent the request
  /// through a proxy.
  var remote: IPEndpoint? {
    switch self {
    case .success(let response): response.remote
    case .failure(let error):
      error.route?.winner?.address.flatMap { address in
        error.route.map { IPEndpoint(address, port: $0.plan.origin.port) }
      }
    }
  }

  /// The addresses that the next attempt avoids: the address to which the attempt sent the request, and the
  /// addresses of the legs that failed.
  var failedAddresses: [IPAddress] {
    let failed = route?.legs.filter { $0.outcome == .failed }.compactMap(\.address) ?? []
    return failed + (remote.map { [$0.address] } ?? [])
  }

  /// Makes the report of the attempt. The report does not keep the response.
  ///
  /// - Parameters:
  ///   - start: when the attempt began, since the start of the call.
  ///   - end: when the attempt ended, since the start of the call.
  ///   - isOvertaken: whether another attempt of the call got a good response first.
  func report(
    _ attempt: Attempt, from start: Duration, to end: Duration, isOvertaken: Bool = false
  ) -> AttemptReport {
    let (outcome, sends): (AttemptReport.Outcome, Int) =
      switch self {
      case .success(let response): (.answered(status: response.status), response.attempts)
      case .failure(let error): (.failed(error), error.route?.winner == nil ? 0 : 1)
      }
    return AttemptReport(
      number: attempt.number, reason: attempt.reason, started: start, ended: end,
      outcome: isOvertaken ? .overtaken : outcome,
      remote: remote, route: route, sends: sends)
  }

  /// Makes the outcome of the whole call from the outcome of one attempt: adds the reports of the other
  /// attempts.
  ///
  /// - Parameters:
  ///   - others: the reports of the attempts that did not give the call its outcome.
  ///   - explanation: a sentence to add to the message of an error; `nil` for none.
  func with(_ others: [AttemptReport], adding explanation: String?) -> Self {
    guard !others.isEmpty || explanation != nil else { return self }
    switch self {
    case .success(var response):
      response.otherAttempts = others
      response.attempts += others.reduce(0) { $0 + $1.sends }
      return .success(response)
    case .failure(let error): return .failure(error.with(otherAttempts: others, adding: explanation))
    }
  }
}
