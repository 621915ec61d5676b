import NetOptCore

/// The response and the errors of a call.
extension StubCall {
  /// The properties of the connection that a leg to this target opens.
  func connection(to target: RoutePlan.Leg.Target) -> StubTransport.Connection {
    StubTransport.Connection(
      origin: plan.origin, destination: .init(target, of: plan),
      isVerified: request.options.verification == .full,
      multiplexes: plan.origin.scheme == .https && request.options.version != .http1)
  }

  /// The report of all legs that were started. A leg that has not ended gets the current time as its end.
  var route: RouteReport {
    let time = offset
    let reports = started.compactMap { index -> RouteReport.Leg? in
      var report = legs[index].report
      if !legs[index].isOver { report?.ended = time }
      return report
    }
    return RouteReport(plan: plan, legs: reports)
  }

  /// Makes the response of the call from the response of the script.
  func response(_ response: StubResponse) -> NetOptResponse {
    let winner = race.winner.map { legs[$0] }
    let connection = race.winner.map { self.connection(to: race.legs[$0].target) }
    let isKept = request.options.connection == .pooled
    var timings = Timings()
    if let leg = winner?.report {
      let connected = leg.connected ?? leg.started
      timings.dns = winner?.lookup ?? .zero
      timings.queue = leg.started - timings.dns
      timings.connect = connected - leg.started
      timings.tls = (leg.secured ?? connected) - connected
      timings.send = leg.ended - (leg.secured ?? connected)
      timings.wait = offset - leg.ended
    }
    return NetOptResponse(
      url: request.url,
      head: ResponseHead(
        status: response.status, version: connection?.multiplexes == true ? .http2 : .http1_1,
        fields: response.fields),
      body: ResponseBody(
        StubBody(
          response, timings, at: now, deadline: context.deadline, on: isKept ? connection : nil, of: transport
        )),
      route: route, remote: winner?.report?.address.map { IPEndpoint($0, port: plan.origin.port) },
      reused: winner?.report?.reused ?? false,
      tls: plan.origin.scheme == .https
        ? TLSReport(verified: request.options.verification == .full, version: "TLSv1.3") : nil)
  }

  /// Makes an error with the route of the call.
  func error(
    _ code: NetOptError.Code, _ phase: NetOptError.Phase, _ message: String
  ) -> NetOptError {
    NetOptError(code, phase: phase, message, route: route)
  }

  /// The error of a call whose legs have all failed.
  var exhaustedError: NetOptError {
    let route = route
    guard let error = RaceFailures(plan, route.legs).error(lookUp: lookupError) else {
      return error(.connectFailed, .connect, "no connection attempt could be started")
    }
    return error.with(route: route)
  }
}
