import NetOptCore

extension HostRoutes {
  /// Learns from a call's legs.
  mutating func record(_ report: RouteReport, at now: MonotonicInstant, using random: inout SplitMix64) {
    if isNoNews(report) { return }
    let winner = report.winner
    for leg in report.legs {
      guard let address = leg.address else { continue }
      switch leg.outcome {
      case .won, .lost:
        let connected = leg.reused ? nil : leg.connected
        let ready = leg.reused ? nil : origin.scheme == .https ? leg.secured : leg.connected
        update(address, at: now) {
          $0.succeeded(
            connect: connected.map { $0 - leg.started }, ready: ready.map { $0 - leg.started }, at: now)
        }
        if let ready, ready > leg.started, let index = index(of: address) {
          noteMeasured(index, at: now, using: &random)
        }
      case .failed:
        if let failure = leg.failure { failed(address, failure, at: now, using: &random) }
      case .cancelled:
        guard let winner, Self.hasBeenOvertaken(leg, by: winner, report.plan) else { continue }
        let kind = leg.connected == nil ? LegFailure.Kind.connectTimeout : .tlsTimeout
        let failure = LegFailure(kind, "not ready when a leg that began later was")
        failed(address, failure, at: now, using: &random)
      }
    }
    // The one attempt of a half-open endpoint is in the first leg. Whatever became of that, it is over; a report of
    // an older plan may give it back early, which lets one more attempt through.
    if case .address(let first) = report.plan.legs.first?.target, lists(first) {
      update(first, at: now) { $0.giveBack() }
    }
    if let winner, let address = winner.address { won(address, from: winner.source) }
  }

  /// Learns from a probe.
  mutating func record(
    probe result: Result<ConnectReport, LegError>, of address: IPAddress, at now: MonotonicInstant,
    using random: inout SplitMix64
  ) {
    let isSecure = origin.scheme == .https
    switch result {
    case .success(let report):
      let connect = report.reused ? nil : report.connect
      update(address, at: now) { health in
        if isSecure && report.tls == nil && !report.reused {
          health.measured(connect: connect)
          _ = health.giveBack()
          return true
        }
        // A probe always verifies, as did whoever opened a pooled connection that it may use.
        let isRelease = health.verified()
        let isNews = health.succeeded(connect: connect, ready: report.reused ? nil : report.ready, at: now)
        return isRelease || isNews
      }
    case .failure(let error):
      if error.isCancellation {
        update(address, at: now) { $0.giveBack() }
      } else {
        failed(address, error.failure, at: now, using: &random)
      }
    }
    if let index = index(of: address) { noteMeasured(index, at: now, using: &random) }
  }

  private mutating func failed(
    _ address: IPAddress, _ failure: LegFailure, at now: MonotonicInstant, using random: inout SplitMix64
  ) {
    let host = origin.host
    update(address, at: now) { $0.failed(failure, of: host, at: now, using: &random) }
  }

  /// Whether a leg that did not come to an end had used up its time when one that began after it won.
  private static func hasBeenOvertaken(
    _ leg: RouteReport.Leg, by winner: RouteReport.Leg, _ plan: RoutePlan
  ) -> Bool {
    guard leg.started < winner.started else { return false }
    let planned = plan.legs.first { $0.target == leg.address.map { .address($0) } }
    return leg.ended - leg.started >= planned?.stagger ?? .defaultStagger
  }
}
