import NetOptCore
import NetOptRouting

/// The records that the checks of a run need: when servers, DNS and the network changed, what the clients
/// have observed of each server since its last change, and which rules were broken.
struct Rules {
  /// What the clients have observed of one server since its last change, and how much they must observe
  /// before the policy can know of the change.
  struct Observations {
    /// When the behaviour of the server last changed.
    var changed: MonotonicInstant
    /// The number of connections that must be measured before the policy can know of the change. With 1, no
    /// connection has to be measured: a failed connection is enough too.
    var connectionsNeeded = 1
    /// The value of `answers` from which the policy can know of the change.
    var answersNeeded = 0
    /// How often a client has learnt something of the server: a connection failed or was measured, or an
    /// attempt that sent its request to the server ended.
    var contacts = 0
    /// The number of measured connections: new connections that became ready.
    var connections = 0
    /// The number of attempts that sent their request to the server and have ended, with any outcome.
    var answers = 0
    /// When a client last tried the server: its last probe began, or the last attempt with a leg to the
    /// server ended. A change of the server does not reset this moment.
    var touched: MonotonicInstant

    /// Whether the clients have observed enough for the policy to know the current behaviour of the server.
    var isKnown: Bool {
      contacts > 0 && answers >= answersNeeded && (connectionsNeeded < 2 || connections >= connectionsNeeded)
    }
  }

  /// The number of requests after a change within which traffic must settle on the best endpoint.
  static let settling = 20

  /// Descriptions of the broken rules, each with its time.
  var faults: [String] = []
  /// The observations of each server, by `Server.ID`.
  var observations: [Observations]
  /// The current behaviour of each server, by `Server.ID`.
  var behaviours: [Server.Behaviour]
  /// When the behaviour of DNS last changed; at first the start of the run.
  var lookUpsChange: MonotonicInstant
  /// When the last request so far arrived; at first the start of the run.
  var lastArrival: MonotonicInstant
  /// When the state of the network last changed; at first the start of the run.
  var networkChange: MonotonicInstant
  /// For each server: the longest time so far between two tries of the server (`Observations.touched`).
  var longestGap: [Duration]
  /// The number of requests that arrived after `lastChange` and succeeded.
  var requestsSince = 0
  /// When a server or the network last changed, or when the clients last observed enough to know of a change.
  /// Requests must settle on the best endpoint after this moment.
  var lastChange: MonotonicInstant
  /// How many of the requests that `requestsSince` counts went to a wrong endpoint or took a detour, once
  /// settling was due. A broken rule sets the count back to 0.
  var unsettled = 0
  /// Whether a race has shown, since the last change of the network, that the network is away: at least two
  /// addresses and DNS failed in this race.
  var sawOutage = false
  /// The server that last answered a request that verified its certificate; `nil` before. Only set in runs of
  /// a single client with the policy `fastest`.
  var winner: Int?
  /// How often `winner` has changed, without the changes at the first requests.
  var winnerChanges = 0
  /// For each server that asked for a rest: when it last asked, and until when it must not be used, at most
  /// 300 s later. `nil` for the other servers.
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

  /// Notes that the behaviour of a server changes.
  mutating func changed(_ server: Server.ID, to behaviour: Server.Behaviour, at now: MonotonicInstant) {
    let involved = [behaviours[server], behaviour]
    behaviours[server] = behaviour
    var observed = Observations(changed: now, touched: observations[server].touched)
    for one in involved {
      switch one {
      // The planner smooths the ready times, so its estimate follows the new round trip time only slowly.
      case .distant: observed.connectionsNeeded = 8
      // Only responses show this behaviour.
      case .slow, .loadDependent, .unavailable: observed.answersNeeded = 3
      default: break
      }
    }
    observations[server] = observed
    restartCount(at: now)
  }

  /// Notes that the state of the network changes.
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

  /// Notes that a connection to the server failed.
  mutating func connectFailed(_ server: Server.ID, at now: MonotonicInstant) {
    observe(server, at: now) { $0.contacts += 1 }
  }

  /// Notes that a new connection to the server became ready.
  mutating func measured(_ server: Server.ID, at now: MonotonicInstant) {
    observe(server, at: now) {
      $0.contacts += 1
      $0.connections += 1
    }
  }

  /// Notes the end of an attempt. Ignores the legs to servers that have changed since the attempt began: such
  /// a leg may show the old behaviour.
  ///
  /// - Parameters:
  ///   - serverIDs: the server at each address.
  ///   - begun: when the attempt began.
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

  /// Changes the observations of a server. Restarts the count of requests when the policy can now know the
  /// behaviour of the server.
  private mutating func observe(
    _ server: Server.ID, at now: MonotonicInstant, _ change: (inout Observations) -> Void
  ) {
    let wasKnown = observations[server].isKnown
    change(&observations[server])
    if !wasKnown, observations[server].isKnown { restartCount(at: now) }
  }

  /// Restarts the count of the requests after which traffic must have settled.
  private mutating func restartCount(at now: MonotonicInstant) {
    lastChange = now
    requestsSince = 0
    unsettled = 0
  }
}
