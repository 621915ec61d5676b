import NetOptCore
import NetOptRouting

extension Server {
  /// The index of a server in `Simulation.servers`.
  typealias ID = Int
}

// The network: connections, requests, DNS look-ups and probes. A function that begins one of these draws its
// course at once, and adds the events of that course to the queue.
extension Simulation {
  /// The course of a connection attempt. All times count from its start.
  private struct Connection {
    /// When the TCP connection is established; `nil` when it never is.
    var connected: Duration?
    /// When the connection is ready, or when the attempt fails.
    var end: Duration
    /// The failure of the attempt; `nil` when the connection gets ready.
    var failure: LegFailure?
  }

  /// Draws the course of a connection attempt that begins now.
  ///
  /// - Parameters:
  ///   - verifies: whether the client verifies the certificate.
  ///   - limit: the time limit of the attempt.
  private func open(
    _ server: Server.ID, verifies: Bool = true, within limit: Duration = Simulation.connectTimeout
  ) -> Connection {
    let seconds = limit.components.seconds
    let silence = Connection(
      end: limit, failure: LegFailure(.connectTimeout, "no answer within \(seconds) s"))
    switch network {
    case .silent: return silence
    case .unreachable:
      return Connection(end: .milliseconds(1), failure: LegFailure(.unreachable, "no route to host"))
    case .up: break
    }
    let target = servers[server]
    let trip = target.trip(using: &random) + target.lossDelay(isFirst: true, using: &random)
    let ready = trip + target.trip(using: &random) + target.lossDelay(isFirst: false, using: &random)
    switch target.behaviour {
    case .blackHole: return silence
    case .refusing: return Connection(end: trip, failure: LegFailure(.refused, "connection refused"))
    case .silentTLS:
      return Connection(
        connected: trip, end: limit, failure: LegFailure(.tlsTimeout, "TLS: no answer within \(seconds) s"))
    case .resetting:
      return Connection(connected: trip, end: ready, failure: LegFailure(.reset, "connection reset"))
    case .wrongCertificate where verifies:
      let failure = LegFailure(.certificateName(presented: ["portal.lan"]), "certificate for portal.lan")
      return Connection(connected: trip, end: ready, failure: failure)
    case .healthy, .unavailable, .slow, .distant, .loadDependent, .wrongCertificate:
      return Connection(connected: trip, end: ready)
    }
  }

  /// Opens a connection for a leg.
  func connect(_ server: Server.ID, _ call: Call, _ leg: Int) {
    let connection = open(server, verifies: call.verifies)
    if let connected = connection.connected {
      queue.add(.connected(call, attempt: call.attempt, leg: leg), at: now + connected)
    }
    if let failure = connection.failure {
      queue.add(.failed(call, attempt: call.attempt, leg: leg, failure), at: now + connection.end)
    } else {
      queue.add(.ready(call, attempt: call.attempt, leg: leg), at: now + connection.end)
    }
  }

  /// Sends the request of a call over a ready connection.
  func send(to server: Server.ID, _ call: Call) {
    var outcome = CallOutcome.silent
    var time = Call.responseTimeout
    if network == .up {
      let trip = servers[server].trip(using: &random)
      switch servers[server].behaviour {
      // A client that is already connected has verified the host's certificate and does not verify it again.
      case .healthy, .slow, .distant, .loadDependent, .wrongCertificate:
        time = trip + servers[server].serve(at: now, using: &random)
        outcome = .answered(wait: time)
      case .unavailable(let rest):
        time = trip
        outcome = .unavailable(status: 503, retryAfter: rest.map { .seconds($0) })
      case .refusing, .resetting:
        time = trip
        outcome = .broke
      case .blackHole, .silentTLS: break
      }
    }
    queue.add(.answer(call, attempt: call.attempt, outcome), at: now + time)
  }

  // MARK: DNS

  /// Starts the DNS look-up of a leg.
  func lookUp(_ leg: Int, _ call: Call) {
    var result = Result<[IPAddress], LegError>.failure(
      LegError(LegFailure(.resolve, "no name server answered")))
    var time = Duration.seconds(2)
    if network == .up {
      switch lookUps {
      case .answers(let numbers):
        result = .success(numbers.map { servers[$0].address })
        time = .milliseconds(random.number(in: 1...80))
      case .noSuchName:
        result = .failure(LegError(LegFailure(.nameNotFound, "no such name")))
        time = .milliseconds(random.number(in: 1...80))
      case .down: break
      }
    } else if network == .unreachable {
      time = .milliseconds(1)
    }
    queue.add(.lookedUp(call, attempt: call.attempt, leg: leg, result), at: now + time)
  }

  /// Handles the end of a DNS look-up: adds the addresses as legs to the race, or lets the leg fail.
  func lookedUp(_ call: Call, _ attempt: Int, _ leg: Int, _ result: Result<[IPAddress], LegError>) {
    guard call.isCurrent(attempt), call.race.winner == nil else { return }
    switch result {
    case .failure(let error): failed(call, attempt, leg, error.failure)
    case .success(let addresses):
      let answers = clients[call.client].planner.ordered(addresses, for: origin, at: now)
        .map { RoutePlan.Leg(.address($0.address), source: .dns, stagger: $0.stagger) }
      let new = call.race.untried(answers)
      guard !new.isEmpty else {
        return failed(
          call, attempt, leg, LegFailure(.nameNotFound, "only addresses that netopt already tried"))
      }
      call.reports.removeAll { $0.index == leg }
      follow(call.race.expanded(leg, into: new), call)
    }
  }

  // MARK: Probes

  /// Starts a probe of an address: a new connection whose certificate is verified.
  ///
  /// - Parameters:
  ///   - keepsConnection: whether the pool keeps the connection for requests.
  ///   - limit: the time limit of the probe.
  func probe(
    _ address: IPAddress, _ client: Int, keepsConnection: Bool,
    within limit: Duration = Simulation.connectTimeout
  ) {
    guard let server = serverIDs[address] else { return }
    clients[client].probes += 1
    rules.touched(server, at: now)
    let connection = open(server, within: limit)
    let result: Result<ConnectReport, LegError> =
      if let failure = connection.failure {
        .failure(LegError(failure))
      } else {
        .success(
          ConnectReport(
            connect: connection.connected ?? .zero, tls: connection.end - (connection.connected ?? .zero)))
      }
    queue.add(
      .probed(client: client, server, result, begun: now, keepsConnection: keepsConnection),
      at: now + connection.end)
  }

  /// Handles the end of a probe.
  ///
  /// - Parameter begun: when the probe began.
  func probed(
    _ client: Int, _ server: Server.ID, _ result: Result<ConnectReport, LegError>,
    from begun: MonotonicInstant, keepsConnection: Bool
  ) {
    note("client \(client + 1) probed \(server + 1): \(result)")
    clients[client].planner.record(
      probe: result, of: servers[server].address, for: origin, from: begun, at: now)
    switch result {
    case .success: verified(server, client)
    case .failure(let error) where error.failure.isOfCertificate:
      metWrongCertificate(server, client, from: begun)
    case .failure: break
    }
    if case .success = result {
      if keepsConnection { clients[client].pool[server] = servers[server].generation }
      if begun >= rules.observations[server].changed { rules.measured(server, at: now) }
    } else if begun >= rules.observations[server].changed {
      rules.connectFailed(server, at: now)
    }
    setProbeTimer(client)
  }

  /// Sets the client's probe timer to the moment that the planner gives, unless the timer runs out earlier
  /// anyway. It runs out at the earliest 500 ms after it last ran out: a policy that always has a probe due
  /// must not stop the virtual clock. Near the end of the run, the timer is not set.
  func setProbeTimer(_ client: Int) {
    guard arrivals < scenario.requests - clients.count,
      let due = clients[client].planner.nextProbe(after: now)
    else { return }
    let next = max(due, clients[client].probedAt + .milliseconds(500), now)
    if let planned = clients[client].probeAt, planned <= next { return }
    clients[client].probeAt = next
    clients[client].probeNumber += 1
    queue.add(.probeTime(client: client, number: clients[client].probeNumber), at: next)
  }

  /// Handles a probe timer that has run out: makes the probes that are due, and sets the timer again.
  func probeTime(_ client: Int, _ number: Int) {
    guard number == clients[client].probeNumber else { return }
    clients[client].probeAt = nil
    clients[client].probedAt = now
    for due in clients[client].planner.dueProbes(at: now) {
      probe(due.address, client, keepsConnection: due.keepsConnection)
    }
    setProbeTimer(client)
  }
}
