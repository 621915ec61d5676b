import NetOptCore
import NetOptRouting

/// The probe method `http`, which sends a HEAD request for the host's health path to the endpoint. The
/// response must have the status that the list expects; for a host without a health check in the list, any
/// status below 500.
struct HTTPProbe: Probe {
  func take(_ sample: ProbeSample, by prober: Prober) async -> Result<ConnectReport, LegError> {
    let target = sample.target
    let health = prober.list?.hosts[target.origin.host]?.health
    let path = health?.path ?? "/"
    var options = RequestOptions()
    options.timeout = sample.limit
    // The deadline of the call is the time limit of the sample. libcurl's timeout for the connection is
    // longer, so that the deadline ends the call first.
    options.connectTimeout = sample.limit + .seconds(1)
    options.connection = sample.keepsConnection ? .pooled : .fresh
    let request = NetOptRequest(.head, HTTPURL(origin: target.origin, target: path), options: options)
    let plan = RoutePlan(
      origin: target.origin, policy: .probe,
      legs: [RoutePlan.Leg(.address(target.address), source: .list)],
      multiplexes: target.origin.scheme == .https)
    let context = CallContext(
      id: 0, started: sample.started, deadline: sample.started + sample.limit)
    do throws(NetOptError) {
      let response = try await prober.transport.execute(request, along: plan, in: context)
      let isFine = health.map { response.status == $0.expect } ?? (response.status < 500)
      guard isFine else {
        let expected = health.map { "\($0.expect)" } ?? "less than 500"
        return .failure(
          LegError(
            LegFailure(.unhealthy, "HEAD \(path) was answered with \(response.status), not with \(expected)"))
        )
      }
      return .success(ConnectReport(response.route))
    } catch {
      return .failure(LegError(healthCheck: error, path, isShortened: sample.isShortened))
    }
  }
}

extension ConnectReport {
  /// Makes a report from the route of a response: the durations of the handshakes of its connection, or
  /// `reused` when the response came on a pooled connection.
  fileprivate init(_ route: RouteReport) {
    guard let leg = route.winner, !leg.reused, let connected = leg.connected else {
      self.init(connect: .zero, reused: true)
      return
    }
    self.init(connect: connected - leg.started, tls: leg.secured.map { $0 - connected })
  }
}

extension LegError {
  /// Makes the error of a failed health check. When the connection failed, the error has the failure of the
  /// connection. When the connection was ready and the request failed, the error has the kind `unhealthy`.
  ///
  /// - Parameters:
  ///   - error: the error of the HEAD request.
  ///   - path: the health path.
  ///   - isShortened: whether the time limit was the rest of the budget. A timeout is then inconclusive: it
  ///     does not count against the endpoint.
  fileprivate init(healthCheck error: NetOptError, _ path: String, isShortened: Bool) {
    let isExcused = isShortened && error.code == .timeout
    let isInconclusive = error.code == .cancelled || error.code == .shutDown || isExcused
    if let leg = error.route?.legs.last, leg.outcome == .failed, let failure = leg.failure {
      self.init(failure, isInconclusive: isInconclusive)
    } else if error.route?.winner == nil, error.code == .timeout {
      self.init(LegFailure(.connectTimeout, error.message), isInconclusive: isInconclusive)
    } else {
      self.init(LegFailure(.unhealthy, "HEAD \(path): \(error.message)"), isInconclusive: isInconclusive)
    }
  }
}
