import NetOptCore
import NetOptRouting

/// What a client has seen of servers whose certificate was wrong, by server.
struct CertificateWatch {
  struct Spell {
    /// When the client first met the wrong certificate.
    let seen: MonotonicInstant
    /// How often it has met it.
    var meetings = 1
    /// Since when the certificate is right again, and the server works.
    var right: MonotonicInstant?
  }

  var spells: [Spell?]
  /// When a new connection last verified the certificate.
  var verified: [MonotonicInstant?]
  /// When the network last seemed down: it is probed at its own pace then.
  var suspected = MonotonicInstant(nanoseconds: .min)
  /// Whether the server has failed otherwise as well, so that its circuit may be what keeps requests away.
  var failsOtherwise: [Bool]

  init(servers: Int) {
    spells = Array(repeating: nil, count: servers)
    verified = Array(repeating: nil, count: servers)
    failsOtherwise = Array(repeating: false, count: servers)
  }
}

extension LegFailure {
  /// Whether a certificate was wrong.
  var isOfCertificate: Bool { if case .certificateName = kind { true } else { false } }
}

// Certificates that come and go.
extension Simulation {
  // MARK: Connections

  /// The generation of the connections to a server of which a call has one that it may use.
  func pooled(_ server: Server.ID, _ call: Call) -> Int? {
    call.verifies ? clients[call.client].pool[server] : clients[call.client].unverifiedPool[server]
  }

  /// A call's connection to a server is ready.
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

  // MARK: What happens

  func certificatesChanged(_ server: Server.ID, to behaviour: Server.Behaviour) {
    let before = servers[server]
    // A restart is over before three requests have met it.
    let isFailure =
      !before.behaviour.works && before.behaviour != .wrongCertificate
      && now - before.changed > Self.longestRestart
    for client in clients.indices {
      certificates[client].spells[server]?.right = behaviour.works ? now : nil
      if isFailure { certificates[client].failsOtherwise[server] = true }
    }
  }

  private static let longestRestart = Duration.milliseconds(50)

  /// A new connection of a client verified the right certificate. It may have begun before the wrong one was there.
  func verified(_ server: Server.ID, _ client: Int) {
    certificates[client].spells[server] = nil
    certificates[client].verified[server] = now
  }

  /// A client has learnt that a connection ended where it was shown the wrong certificate.
  ///
  /// - Parameter begun: when the probe, or the attempt of a call, began.
  func metWrongCertificate(_ server: Server.ID, _ client: Int, from begun: MonotonicInstant) {
    guard let spell = certificates[client].spells[server] else {
      return learnedOfWrongCertificate(server, client, from: begun)
    }
    // What began before it was known could not be left out.
    noteSuspicion(of: client)
    guard begun > spell.seen, begun > certificates[client].suspected else { return }
    certificates[client].spells[server]?.meetings += 1
    checkMeetings(server, client)
  }

  /// A client has learnt of the wrong certificate, however it came to the server: from then on it keeps away.
  func learnedOfWrongCertificate(_ server: Server.ID, _ client: Int, from begun: MonotonicInstant) {
    // What began before the certificate was verified is no news, nor to the policy before the server was seen to work.
    guard certificates[client].spells[server] == nil,
      certificates[client].verified[server].map({ begun > $0 }) ?? true, isQuarantined(server, client)
    else { return }
    var spell = CertificateWatch.Spell(seen: now)
    if servers[server].behaviour.works { spell.right = servers[server].changed }
    certificates[client].spells[server] = spell
  }

  /// Notes the moment when a client suspects the network. Called when it plans, and when it learns of a wrong certificate.
  func noteSuspicion(of client: Int) {
    if clients[client].planner.suspectsNetwork(at: now) { certificates[client].suspected = now }
  }

  /// Whether the policy has taken the wrong certificate in. While an attempt is under way that began before, it says half-open.
  private func isQuarantined(_ server: Server.ID, _ client: Int) -> Bool {
    clients[client].planner.status(of: origin, at: now).contains {
      $0.endpoint.address == servers[server].address
        && ($0.state == .quarantined || $0.state == .halfOpen && $0.lastFailure?.isOfCertificate == true)
    }
  }

  // MARK: What has to hold

  /// Once, and again after 1, 3, 7, 15, 31 and 63 s and each minute from there on.
  private func checkMeetings(_ server: Server.ID, _ client: Int) {
    guard server < scenario.listed, let spell = certificates[client].spells[server] else { return }
    let seconds = (now - spell.seen).milliseconds / 1000
    var most = 1.0
    var next = 1.0
    while next <= min(seconds, 63) {
      most += 1
      next = 2 * next + 1
    }
    most += max(0, ((seconds - 63) / 60).rounded(.down))
    if Double(spell.meetings) > most {
      fault(
        "client \(client + 1) met the wrong certificate of \(server + 1) \(spell.meetings) times in \(Int(seconds)) s"
      )
    }
  }

  /// An endpoint whose certificate was wrong is used as soon as it was verified again, and not before. Each time that it
  /// was wrong it is checked after about as long as it has been wrong already, and after a minute at most.
  func checkCertificates(of client: Int) {
    // Near the end nothing is probed any more.
    guard arrivals < scenario.requests - clients.count else { return }
    let now = now
    let isSuspected = clients[client].planner.suspectsNetwork(at: now)
    for status in clients[client].planner.status(of: origin, at: now) {
      guard let server = places[status.endpoint.address], let spell = certificates[client].spells[server]
      else {
        continue
      }
      if status.state != .quarantined, status.state != .halfOpen {
        fault("\(server + 1) is used although nobody has verified its certificate since it was wrong")
        certificates[client].spells[server] = nil
      }
      guard let right = spell.right, !certificates[client].failsOtherwise[server], !isSuspected, !hasOutage
      else { continue }
      // A fifth longer for jitter, and what a handshake takes, with loss, and the timer of the probes.
      let wait = min(max(right - spell.seen, .zero) * 1.2 + .seconds(1.2), .seconds(72))
      if status.state == .quarantined, now > max(right, spell.seen) + wait + .seconds(4) {
        fault(
          "the certificate of \(server + 1) has been right for \((now - right).components.seconds) s, and it is not used"
        )
        certificates[client].spells[server] = nil
      }
    }
  }

  private var hasOutage: Bool {
    scenario.changes.contains { if case .network = $0.change { true } else { false } }
  }
}
