import NetOptCore
import NetOptRouting

// Requests that wait for their responses. Each client looks at them ten times a second, as the transport of
// the real client does.
extension Simulation {
  /// The time between two looks at a client's waiting requests.
  private static let waitCheckInterval = Duration.milliseconds(100)
  /// The time limit of a new connection that the planner asks for because requests wait.
  private static let probeLimit = Duration.seconds(1)
  /// The kind of all simulated requests.
  private static let request = RequestKind(.get, path: "/".utf8)

  /// Notes that a call has sent its request and now waits for the response.
  func waits(_ call: Call) {
    call.sentAt = now
    clients[call.client].waiting.append(call)
    guard !clients[call.client].isWaitCheckScheduled else { return }
    clients[call.client].isWaitCheckScheduled = true
    queue.add(.waitCheck(client: call.client), at: now + Self.waitCheckInterval)
  }

  /// Notes that a call no longer waits for a response.
  func waitEnds(_ call: Call) {
    call.sentAt = nil
    clients[call.client].waiting.removeAll { $0 === call }
  }

  /// Notes that a call's client has now received something from the server of the call.
  func noteReceived(_ call: Call) {
    guard let server = winner(of: call) else { return }
    clients[call.client].lastReceived[server] = now
  }

  /// The server to which the current attempt sent its request; `nil` before.
  func winner(of call: Call) -> Server.ID? { call.report.winner?.address.flatMap { serverIDs[$0] } }

  /// Passes the waiting requests of a client to its planner. Opens the connections that the planner asks for,
  /// and takes away the requests that it names.
  func checkWaiting(_ client: Int) {
    let waiting = clients[client].waiting
    var calls: [Call] = []
    var requests: [WaitingRequest] = []
    for call in waiting {
      guard let sent = call.sentAt, now - sent >= Self.waitCheckInterval, let server = winner(of: call),
        server < scenario.listed
      else { continue }
      calls.append(call)
      requests.append(
        WaitingRequest(
          origin: origin, address: servers[server].address, kind: Self.request, sent: sent,
          lastReceived: clients[client].lastReceived[server] ?? sent,
          answered: clients[client].lastReceived[server],
          deadline: call.started + Call.limit, isWhole: true,
          mayMove: call.attempt + 1 < Call.mostAttempts))
    }
    let now = now
    let findings = clients[client].planner.observe(waiting: requests, now: now)
    for due in findings.probes { probe(due.address, client, keepsConnection: false, within: Self.probeLimit) }
    for taken in findings.taken {
      guard takeRetry(client) else {
        calls[taken.position].lacksBudget = true
        continue
      }
      take(calls[taken.position], taken.failure)
    }
    clients[client].isWaitCheckScheduled = !waiting.isEmpty
    if !waiting.isEmpty { queue.add(.waitCheck(client: client), at: now + Self.waitCheckInterval) }
  }

  /// Takes a request from a server that has gone silent: ends the attempt, so that the call retries. The
  /// retry is already taken from the budget.
  private func take(_ call: Call, _ failure: LegFailure) {
    guard let leg = call.report.winner, let server = winner(of: call) else { return }
    note("request \(call.number): taken from \(server + 1): \(failure.message)")
    call.change(leg.index) { $0.failure = failure }
    clients[call.client].pool[server] = nil
    end(call, .broke, isPaid: true)
  }

  /// Checks that a request does not wait long for a server that has stopped while another listed server
  /// works. Ignores a request that could not move because the retry budget was used up.
  ///
  /// - Parameter end: when the request ceased to wait.
  func checkWait(of call: Call, until end: MonotonicInstant) {
    guard clients.count == 1, scenario.kind == .stalls, network == .up, let sent = call.sentAt,
      let server = winner(of: call), server < scenario.listed, servers[server].behaviour == .silentTLS,
      servers[server].changed <= sent, end - sent > Self.longestWait, !call.lacksBudget
    else { return }
    let states = clients[call.client].planner.status(of: origin, at: now)
    let others = servers.indices.prefix(scenario.listed).filter { other in
      other != server && servers[other].behaviour.works && servers[other].changed <= sent
        && states.contains { $0.endpoint.address == servers[other].address && $0.state == .closed }
    }
    guard let other = others.first else { return }
    fault(
      "request \(call.number) waited \((end - sent).components.seconds) s for \(server + 1), which had stopped, while "
        + "\(other + 1) worked")
  }

  /// The longest time that a request may wait for a server that has stopped. The client needs 1 s until it
  /// suspects the endpoint, 1 s for the new connection that it tries, and the intervals between its looks.
  /// The limit is about twice this sum, because the suspicion takes longer after an earlier wrong suspicion.
  private static let longestWait = Duration.seconds(4)
}
