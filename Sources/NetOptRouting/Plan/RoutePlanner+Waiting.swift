package import NetOptCore

/// What is to be done about requests that wait for their answers.
package struct WaitFindings: Sendable {
  /// New connections to be tried: to endpoints that are suspected, and to others for comparison.
  package var probes: [DueProbe] = []
  /// Requests that are better sent elsewhere, those first that have waited longest.
  package var taken: [TakenRequest] = []
  /// Endpoints that have gone silent for certain.
  package var silent: [SilentEndpoint] = []
}

extension RoutePlanner {
  /// Learns from requests that wait for their answers. To be called again and again as long as there are any, and once when there are
  /// none any more.
  ///
  /// - Parameter probes: whether the connections are tried that the findings ask for.
  package mutating func look(
    at waiting: [WaitingRequest], probes: Bool = true, now: MonotonicInstant
  ) -> WaitFindings {
    var findings = WaitFindings()
    var requests: [Int: [(position: Int, request: WaitingRequest)]] = [:]
    for (position, request) in waiting.enumerated() {
      guard let place = listedPlace(of: request.origin) else { continue }
      requests[place, default: []].append((position, request))
    }
    let isFrozen = suspectsNetwork(at: now)
    // In their order, so that a run is the same each time.
    for place in Set(requests.keys).union(silent).sorted() where hosts.indices.contains(place) {
      hosts[place].look(
        at: requests[place] ?? [], isFrozen: isFrozen, probes: probes, into: &findings, at: now,
        using: &random)
    }
    noteSilent()
    findings.taken.sort {
      (waiting[$0.position].sent, $0.position) < (waiting[$1.position].sent, $1.position)
    }
    return findings
  }

  /// Notes which origins have endpoints that are suspected.
  mutating func noteSilent() { silent = hosts.indices.filter { hosts[$0].hasSilentEndpoints } }

  /// Learns that a request was answered, while endpoints are suspected of not answering.
  ///
  /// - Parameters:
  ///   - status: the answer's. One that says that the server has trouble, or enough of it (429), is no sign that a request is better off there.
  ///   - begun: when its call began.
  package mutating func answered(
    _ request: NetOptRequest, along report: RouteReport, _ outcome: CallOutcome, status: Int,
    from begun: MonotonicInstant
  ) {
    // Nearly always.
    if silent.isEmpty { return }
    guard case .answered(let wait) = outcome, status < 500, status != 429,
      let address = report.winner?.address,
      let place = places[report.plan.origin], silent.contains(place)
    else { return }
    hosts[place].elsewhere.add(RequestKind(request), of: address, after: wait, from: begun)
  }
}
