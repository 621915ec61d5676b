import NetOptCore
import NetOptRouting

/// What a client has seen of wrong certificates, for each server.
struct CertificateWatch {
  struct Period {
    /// When the client first met the wrong certificate.
    let firstSeen: MonotonicInstant
    /// How often the client has met the wrong certificate.
    var encounters = 1
    /// Since when the certificate is right again and the server works.
    var validSince: MonotonicInstant?
  }

  var periods: [Period?]
  /// When a new connection to each server last verified its certificate.
  var verified: [MonotonicInstant?]
  /// When the client last suspected a network outage: it probes at a different rate then.
  var suspected = MonotonicInstant(nanoseconds: .min)
  /// Whether the server has failed in other ways too, so that its circuit breaker may be what keeps requests
  /// away.
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

  func dropPooled(_ server: Server.ID, _ call: Call) {
    if call.verifies {
      clients[call.client].pool[server] = nil
    } else {
      clients[call.client].unverifiedPool[server] = nil
    }
  }

  // MARK: Events

  func certificatesChanged(_ server: Server.ID, to behaviour: Server.Behaviour) {
    let before = servers[server]
    // A shorter failure is a restart, which ends before three requests have met it.
    let isFailure =
      !before.behaviour.works && before.behaviour != .wrongCertificate
      && now - before.changed > Self.longestRestart
    for client in clients.indices {
      certificates[client].periods[server]?.validSince = behaviour.works ? now : nil
      if isFailure { certificates[client].failsOtherwise[server] = true }
    }
  }

  private static let longestRestart = Duration.milliseconds(50)

  /// Notes that a new connection of a client verified the right certificate. The connection may have begun
  /// before the certificate became wrong.
  func verified(_ server: Server.ID, _ client: Int) {
    certificates[client].periods[server] = nil
    certificates[client].verified[server] = now
  }

  /// Notes that a connection of a client ended because the server presented the wrong certificate.
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

  /// Notes that a client knows of the wrong certificate, on whatever path it reached the server. From now on
  /// the client must avoid the server.
  func learnedOfWrongCertificate(_ server: Server.ID, _ client: Int, from begun: MonotonicInstant) {
    // An attempt that began before the certificate was verified brings no news. The policy also ignores a
    // wrong certificate until it has seen the server work.
    guard certificates[client].periods[server] == nil,
      certificates[client].verified[server].map({ begun > $0 }) ?? true, isQuarantined(server, client)
    else { return }
    var period = CertificateWatch.Period(firstSeen: now)
    if servers[server].behaviour.works { period.validSince = servers[server].changed }
    certificates[client].periods[server] = period
  }

  /// Notes the time when a client suspects the network. Called when the client plans, and when it learns of a
  /// wrong certificate.
  func noteSuspicion(of client: Int) {
    if clients[client].planner.suspectsNetwork(at: now) { certificates[client].suspected = now }
  }

  /// Whether the policy knows of the wrong certificate. While an attempt that began earlier is under way, the
  /// policy reports the endpoint as half-open.
  private func isQuarantined(_ server: Server.ID, _ client: Int) -> Bool {
    clients[client].planner.status(of: origin, at: now).contains {
      $0.endpoint.address == servers[server].address
        && ($0.state == .quarantined || $0.state == .halfOpen && $0.lastFailure?.isOfCertificate == true)
    }
  }

  // MARK: Rules

  /// Checks how often a client met the wrong certificate: at most once, again after 1, 3, 7, 15, 31 and 63 s,
  /// and then once a minute.
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

  /// Checks that an endpoint whose certificate was wrong is used only after its certificate was verified
  /// again, and then soon. The client verifies the certificate again after a wait about as long as the
  /// certificate has been wrong, and at most a minute.
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
      // The limit is 20 % longer for the jitter, plus the time of a handshake with packet loss and the
      // granularity of the probe timer.
      let wait = min(max(validSince - period.firstSeen, .zero) * 1.2 + .seconds(1.2), .seconds(72))
      if status.state == .quarantined, now > max(validSince, period.firstSeen) + wait + .seconds(4) {
        fault(
          "the certificate of \(server + 1) has been right for \((now - validSince).components.seconds) s, and it is not used"
        )
        certificates[client].periods[server] = nil
      }
    }
  }

  private var hasOutage: Bool {
    scenario.changes.contains { if case .network = $0.change { true } else { false } }
  }
}
