import NetOptCore
import NetOptRouting

/// What the checks know about a run: when things changed, and since when a client could know of the change.
struct Rules {
  /// The observations of one server that the policy needs after a change before it can know of the change.
  struct Observations {
    var changed: MonotonicInstant
    /// The number of connections that must be measured, and of requests that must be answered.
    var connectionsNeeded = 1
    var answersNeeded = 0
    var contacts = 0
    var connections = 0
    var answers = 0
    /// When the client last connected to the server or probed it.
    var touched: MonotonicInstant

    /// Whether the policy has made enough observations to know the current behaviour of the server.
    var isKnown: Bool {
      contacts > 0 && answers >= answersNeeded && (connectionsNeeded < 2 || connections >= connectionsNeeded)
    }
  }

  /// The number of requests within which traffic must settle on the best endpoint.
  static let settling = 20

  var faults: [String] = []
  var observations: [Observations]
  var behaviours: [Server.Behaviour]
  var lookUpsChange: MonotonicInstant
  var lastArrival: MonotonicInstant
  var networkChange: MonotonicInstant
  /// The longest time for which no client tried each server.
  var longestGap: [Duration]
  /// The number of requests since the last change; `unsettled` counts the requests that went to a wrong
  /// endpoint.
  var requestsSince = 0
  var lastChange: MonotonicInstant
  var unsettled = 0
  /// Whether a race showed that the network is away: two endpoints and DNS failed in the same race.
  var sawOutage = false
  var winner: Int?
  var winnerChanges = 0
  /// For each server that asked for a rest: when it asked, and until when it must not be used.
  var rests: [(since: MonotonicInstant, until: MonotonicInstant)?]

  init(servers: Int, at now: MonotonicInstant) {
    observations = Array(repeating: Observations(changed: now, touched: now), count: servers)
    behaviours = Array(repeating: .healthy, count: servers)
    longestGap = Array(repeating: .zero, count: servers)
    rests = Array(repeating: nil, count: servers)
    lookUpsChange = now
    lastChange = now
    lastArrival = now
    networkChange = now
  }

  // MARK: Events

  mutating func changed(_ server: Server.ID, to behaviour: Server.Behaviour, at now: MonotonicInstant) {
    let involved = [behaviours[server], behaviour]
    behaviours[server] = behaviour
    var observed = Observations(changed: now, touched: observations[server].touched)
    for one in involved {
      switch one {
      // The smoothed round trip time follows gradually.
      case .distant: observed.connectionsNeeded = 8
      case .slow, .loadDependent, .unavailable: observed.answersNeeded = 3
      default: break
      }
    }
    observations[server] = observed
    restartCount(at: now)
  }

  mutating func networkChanged(at now: MonotonicInstant) {
    networkChange = now
    sawOutage = false
    restartCount(at: now)
  }

  /// Notes that a client tried the server: a probe began, or an attempt with a leg to the server ended.
  mutating func touched(_ server: Server.ID, at now: MonotonicInstant) {
    longestGap[server] = max(longestGap[server], now - observations[server].touched)
    observations[server].touched = now
  }

  /// Notes that a connection failed.
  mutating func connectFailed(_ server: Server.ID, at now: MonotonicInstant) {
    observe(server, at: now) { $0.contacts += 1 }
  }

  /// Notes that a connection was measured.
  mutating func measured(_ server: Server.ID, at now: MonotonicInstant) {
    observe(server, at: now) {
      $0.contacts += 1
      $0.connections += 1
    }
  }

  /// Notes the end of an attempt.
  mutating func learned(
    _ report: RouteReport, _ outcome: CallOutcome, serverIDs: [IPAddress: Int], from begun: MonotonicInstant,
    at now: MonotonicInstant
  ) {
    let failed = report.legs.filter { $0.outcome == .failed }
    if failed.contains(where: { $0.failure?.kind == .resolve }),
      failed.count(where: { $0.address != nil }) > 1
    {
      sawOutage = true
    }
    for leg in report.legs {
      guard let address = leg.address, let server = serverIDs[address],
        begun >= observations[server].changed
      else { continue }
      touched(server, at: now)
      switch leg.outcome {
      case .won:
        if !leg.reused { measured(server, at: now) }
        observe(server, at: now) {
          $0.contacts += 1
          $0.answers += 1
        }
        if case .unavailable(_, let rest?) = outcome {
          rests[server] = (now, now + min(rest, .seconds(300)))
        }
      case .lost: measured(server, at: now)
      case .failed: connectFailed(server, at: now)
      // A cancelled leg had no time to show the behaviour of the server.
      case .cancelled: break
      }
    }
  }

  /// Records an observation, and restarts the count of requests when the server becomes known.
  private mutating func observe(
    _ server: Server.ID, at now: MonotonicInstant, _ change: (inout Observations) -> Void
  ) {
    let wasKnown = observations[server].isKnown
    change(&observations[server])
    if !wasKnown, observations[server].isKnown { restartCount(at: now) }
  }

  private mutating func restartCount(at now: MonotonicInstant) {
    lastChange = now
    requestsSince = 0
    unsettled = 0
  }
}
