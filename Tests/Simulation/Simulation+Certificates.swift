import NetOptCore
import NetOptRouting

/// What one client has seen of wrong certificates. The arrays have an element for each server, by
/// `Server.ID`.
struct CertificateWatch {
  /// The time in which a client must avoid a server. It begins when the client learns that the certificate is
  /// wrong, and ends when a new connection verifies the right certificate.
  struct Period {
    /// When the client learnt of the wrong certificate.
    let firstSeen: MonotonicInstant
    /// How often the client has met the wrong certificate although it could have avoided the server; the
    /// first encounter counts too.
    var encounters = 1
    /// Since when the certificate is right again and the server works; `nil` while it is wrong or the server
    /// does not work.
    var validSince: MonotonicInstant?
  }

  /// The present period of each server; `nil` for a server that the client need not avoid.
  var periods: [Period?]
  /// When a new connection to each server last verified its certificate; `nil` if none has.
  var verified: [MonotonicInstant?]
  /// When the client last suspected a network outage. During a suspicion it probes at other intervals, so
  /// encounters in that time do not count.
  var suspected = MonotonicInstant(nanoseconds: .min)
  /// Whether the server has also failed in another way than with a wrong certificate, for longer than a
  /// restart. Then its circuit breaker may keep requests away, too.
  var failsOtherwise: [Bool]

  init(servers: Int) {
    periods = Array(repeating: nil, count: servers)
    verified = Array(repeating: nil, count: servers)
    failsOtherwise = Array(repeating: false, count: servers)
  }
}

extension LegFailure {
  /// Whether the failure is a wrong certificate.
  var isOfCertificate: Bool { if case .certificateName = kind { true } else { false } }
}

// The rules for certificates that become wrong and right again.
extension Simulation {
  // MARK: Connections

  /// The generation of the pooled connection to a server that the call may use; `nil` when there is none.
  func pooled(_ server: Server.ID, _ call: Call) -> Int? {
    call.verifies ? clients[call.client].pool[server] : clients[call.client].unverifiedPool[server]
  }

  /// Notes that a call's connection to a server is ready.
  func keep(_ server: Server.ID, _ call: Call, isReused: Bool) {
    let generation = servers[server].generation
    guard call.verifies else { return clients[call.client].unverifiedPool[server] = generation }
    clients[call.client].pool[server] = generation
    if !isReused { verified(server, call.client) }
  }

  /// Removes the pooled connection to a server that a call of this kind uses: with or without verification.
  func dropPooled(_ server: Server.ID, _ call: Call) {
    if call.verifies {
      clients[call.client].pool[server] = nil
    } else {
      clients[call.client].unverifiedPool[server] = nil
    }
  }

  // MARK: Events

  /// Notes that a server changes its behaviour. Must be called before the server itself changes.
  func certificatesChanged(_ server: Server.ID, to behaviour: Server.Behaviour) {
    let before = servers[server]
    // A failure that was shorter is a restart. It ends before three requests have failed, so the circuit
    // breaker stays closed.
    let isFailure =
      !before.behaviour.works && before.behaviour != .wrongCertificate
      && now - before.changed > Self.longestRestart
    for client in clients.indices {
      certificates[client].periods[server]?.validSince = behaviour.works ? now : nil
      if isFailure { certificates[client].failsOtherwise[server] = true }
    }
  }

  /// The longest time for which a server fails during a restart.
  private static let longestRestart = Duration.milliseconds(50)

  /// Notes that a new connection of a client verified the right certificate. The connection may have begun
  /// before the certificate became wrong.
  func verified(_ server: Server.ID, _ client: Int) {
    certificates[client].periods[server] = nil
    certificates[client].verified[server] = now
  }

  /// Notes that a connection of a client to a listed address ended because the server presented the wrong
  /// certificate. Checks that this does not happen too often.
  ///
  /// - Parameter begun: when the probe, or the call's attempt, began.
  func metWrongCertificate(_ server: Server.ID, _ client: Int, from begun: MonotonicInstant) {
    guard let period = certificates[client].periods[server] else {
      return learnedOfWrongCertificate(server, client, from: begun)
    }
    // An attempt that began before the client knew of the wrong certificate could not avoid the server.
    noteSuspicion(of: client)
    guard begun > period.firstSeen, begun > certificates[client].suspected else { return }
    certificates[client].periods[server]?.encounters += 1
    checkEncounters(server, client)
  }

  /// Notes that a client has met a wrong certificate, at a listed address or at one from DNS. If this is
  /// news, a period begins in which the client must avoid the server.
  ///
  /// - Parameter begun: when the probe, or the call's attempt, began.
  func learnedOfWrongCertificate(_ server: Server.ID, _ client: Int, from begun: MonotonicInstant) {
    // An attempt that began before the certificate was last verified brings no news. The policy, too, ignores
    // a failed attempt that began before the server was last seen to work. Then `isQuarantined` is false.
    guard certificates[client].periods[server] == nil,
      certificates[client].verified[server].map({ begun > $0 }) ?? true, isQuarantined(server, client)
    else { return }
    var period = CertificateWatch.Period(firstSeen: now)
    if servers[server].behaviour.works { period.validSince = servers[server].changed }
    certificates[client].periods[server] = period
  }

  /// Notes the present moment if the client suspects a network outage. Called when the client plans, and when
  /// it meets a wrong certificate.
  func noteSuspicion(of client: Int) {
    if clients[client].planner.suspectsNetwork(at: now) { certificates[client].suspected = now }
  }

  /// Whether the client's planner knows of the wrong certificate. The planner reports the endpoint as
  /// half-open while an attempt that began earlier is under way.
  private func isQuarantined(_ server: Server.ID, _ client: Int) -> Bool {
    clients[client].planner.status(of: origin, at: now).contains {
      $0.endpoint.address == servers[server].address
        && ($0.state == .quarantined || $0.state == .halfOpen && $0.lastFailure?.isOfCertificate == true)
    }
  }

  // MARK: Rules

  /// Checks how often a client has met the wrong certificate of a server: once, again after 1, 3, 7, 15, 31
  /// and 63 s at the earliest, and then at most once a minute.
  private func checkEncounters(_ server: Server.ID, _ client: Int) {
    guard server < scenario.listed, let period = certificates[client].periods[server] else { return }
    let seconds = (now - period.firstSeen).milliseconds / 1000
    var most = 1.0
    var next = 1.0
    while next <= min(seconds, 63) {
      most += 1
      next = 2 * next + 1
    }
    most += max(0, ((seconds - 63) / 60).rounded(.down))
    if Double(period.encounters) > most {
      fault(
        "client \(client + 1) met the wrong certificate of \(server + 1) \(period.encounters) times in \(Int(seconds)) s"
      )
    }
  }

  /// Checks that an endpoint whose certificate was wrong is used only after a new connection has verified its
  /// certificate. Also checks that the endpoint is used again soon after the certificate is right. The client
  /// checks the certificate after waits that double, up to a minute. So the certificate is checked after
  /// about the time for which it was wrong, and after a minute at the latest.
  func checkCertificates(of client: Int) {
    // The clients send no probes near the end of the run.
    guard arrivals < scenario.requests - clients.count else { return }
    let now = now
    let isSuspected = clients[client].planner.suspectsNetwork(at: now)
    for status in clients[client].planner.status(of: origin, at: now) {
      guard let server = serverIDs[status.endpoint.address], let period = certificates[client].periods[server]
      else {
        continue
      }
      if status.state != .quarantined, status.state != .halfOpen {
        fault("\(server + 1) is used although nobody has verified its certificate since it was wrong")
        certificates[client].periods[server] = nil
      }
      guard let validSince = period.validSince, !certificates[client].failsOtherwise[server], !isSuspected,
        !hasOutage
      else { continue }
      // The waits of the policy are up to 20 % longer because of their jitter. The 4 s below are for a
      // handshake with packet loss, and for the intervals of the probe timer.
      let wait = min(max(validSince - period.firstSeen, .zero) * 1.2 + .seconds(1.2), .seconds(72))
      if status.state == .quarantined, now > max(validSince, period.firstSeen) + wait + .seconds(4) {
        fault(
          "the certificate of \(server + 1) has been right for \((now - validSince).components.seconds) s, and it is not used"
        )
        certificates[client].periods[server] = nil
      }
    }
  }

  /// Whether the network goes away during the run.
  private var hasOutage: Bool {
    scenario.changes.contains { if case .network = $0.change { true } else { false } }
  }
}
