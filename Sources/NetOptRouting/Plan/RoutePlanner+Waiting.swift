package import NetOptCore

/// The actions to take for requests that wait for responses.
package struct WaitFindings: Sendable {
  /// New connections to open, to endpoints that are newly suspected and, for comparison, to others.
  package var probes: [DueProbe] = []
  /// Requests to take from their connections and send again. The request that was sent first comes first.
  package var taken: [TakenRequest] = []
  /// Endpoints that the planner has found to be silent.
  package var silent: [SilentEndpoint] = []
}

extension RoutePlanner {
  /// Learns from requests that wait for responses. The caller calls this function repeatedly while requests
  /// wait, and once more when none wait.
  ///
  /// - Parameter probes: whether the caller opens the connections that the findings ask for.
  package mutating func observe(
    waiting: [WaitingRequest], probes: Bool = true, now: MonotonicInstant
  ) -> WaitFindings {
    var findings = WaitFindings()
    var requests: [Int: [(position: Int, request: WaitingRequest)]] = [:]
    for (position, request) in waiting.enumerated() {
      guard let hostIndex = listedHostIndex(of: request.origin) else { continue }
      requests[hostIndex, default: []].append((position, request))
    }
    let isFrozen = suspectsNetwork(at: now)
    // Sorted, so that each run gives the same result.
    for hostIndex in Set(requests.keys).union(silentHostIndices).sorted()
    where hosts.indices.contains(hostIndex) {
      hosts[hostIndex].observe(
        waiting: requests[hostIndex] ?? [], isFrozen: isFrozen, probes: probes, into: &findings, at: now,
        using: &random)
    }
    updateSilentHosts()
    findings.taken.sort {
      (waiting[$0.position].sent, $0.position) < (waiting[$1.position].sent, $1.position)
    }
    return findings
  }

  /// Notes in `silentHostIndices` which origins have suspected endpoints.
  mutating func updateSilentHosts() {
    silentHostIndices = hosts.indices.filter { hosts[$0].hasSuspectedEndpoints }
  }

  /// Remembers the response to a request while endpoints of its origin are suspected of being silent. It may
  /// show that another endpoint answers such requests. Does nothing at other times.
  ///
  /// - Parameters:
  ///   - status: the status of the response. The function ignores a response with status 429 or a status of
  ///     500 and above: it does not show that a request fares better at this endpoint.
  ///   - begun: when the call began.
  package mutating func answered(
    _ request: NetOptRequest, along report: RouteReport, _ outcome: CallOutcome, status: Int,
    from begun: MonotonicInstant
  ) {
    // Nearly always, no endpoint is suspected.
    if silentHostIndices.isEmpty { return }
    guard case .answered(let wait) = outcome, status < 500, status != 429,
      let address = report.winner?.address,
      let hostIndex = hostIndices[report.plan.origin], silentHostIndices.contains(hostIndex)
    else { return }
    hosts[hostIndex].elsewhere.add(RequestKind(request), of: address, after: wait, from: begun)
  }
}
