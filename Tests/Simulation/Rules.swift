import NetOptCore
import NetOptRouting

/// What is known of a run to whoever judges it: when things changed, and since when a client could know.
struct Rules {
  /// What has to be seen of a server after a change before the policy can know.
  struct Sight {
    var changed: MonotonicInstant
    /// How many connections have to be measured, and how many requests answered.
    var connectionsNeeded = 1
    var answersNeeded = 0
    var contacts = 0
    var connections = 0
    var answers = 0
    /// When anything was last tried there.
    var touched: MonotonicInstant

    /// Whether the policy had the occasion to see how the server is now.
    var isKnown: Bool {
      contacts > 0 && answers >= answersNeeded && (connectionsNeeded < 2 || connections >= connectionsNeeded)
    }
  }

  /// The requests within which traffic settles on the best endpoint.
  static let settling = 20

  var faults: [String] = []
  var sights: [Sight]
  var behaviours: [Server.Behaviour]
  var lookUpsChange: MonotonicInstant
  var lastArrival: MonotonicInstant
  var networkChange: MonotonicInstant
  /// The longest time for which a server was not tried.
  var longestGap: [Duration]
  /// The requests since something could first be known, and those of them that did not go well.
  var requestsSince = 0
  var lastNews: MonotonicInstant
  var unsettled = 0
  /// Whether what failed showed that the network is away: two endpoints and DNS in one race.
  var sawOutage = false
  var winner: Int?
  var winnerChanges = 0
  /// Until when a server asked not to be used, and since when.
  var rests: [(since: MonotonicInstant, until: MonotonicInstant)?]

  init(servers: Int, at now: MonotonicInstant) {
    sights = Array(repeating: Sight(changed: now, touched: now), count: servers)
    behaviours = Array(repeating: .healthy, count: servers)
    longestGap = Array(repeating: .zero, count: servers)
    rests = Array(repeating: nil, count: servers)
    lookUpsChange = now
    lastNews = now
    lastArrival = now
    networkChange = now
  }

  // MARK: What happens

  mutating func changed(_ server: Server.ID, to behaviour: Server.Behaviour, at now: MonotonicInstant) {
    let involved = [behaviours[server], behaviour]
    behaviours[server] = behaviour
    var sight = Sight(changed: now, touched: sights[server].touched)
    for one in involved {
      switch one {
      // The smoothed round trip time follows by and by.
      case .distant: sight.connectionsNeeded = 8
      case .slow, .crowded, .unavailable: sight.answersNeeded = 3
      default: break
      }
    }
    sights[server] = sight
    beginAnew(at: now)
  }

  mutating func networkChanged(at now: MonotonicInstant) {
    networkChange = now
    sawOutage = false
    beginAnew(at: now)
  }

  /// A probe begins.
  mutating func touched(_ server: Server.ID, at now: MonotonicInstant) {
    longestGap[server] = max(longestGap[server], now - sights[server].touched)
    sights[server].touched = now
  }

  /// A connection failed.
  mutating func met(_ server: Server.ID, at now: MonotonicInstant) {
    see(server, at: now) { $0.contacts += 1 }
  }

  /// A connection was measured.
  mutating func measured(_ server: Server.ID, at now: MonotonicInstant) {
    see(server, at: now) {
      $0.contacts += 1
      $0.connections += 1
    }
  }

  /// An attempt is over.
  mutating func learned(
    _ report: RouteReport, _ outcome: CallOutcome, places: [IPAddress: Int], from begun: MonotonicInstant,
    at now: MonotonicInstant
  ) {
    let failed = report.legs.filter { $0.outcome == .failed }
    if failed.contains(where: { $0.failure?.kind == .resolve }),
      failed.count(where: { $0.address != nil }) > 1
    {
      sawOutage = true
    }
    for leg in report.legs {
      guard let address = leg.address, let server = places[address], begun >= sights[server].changed else {
        continue
      }
      touched(server, at: now)
      switch leg.outcome {
      case .won:
        if !leg.reused { measured(server, at: now) }
        see(server, at: now) {
          $0.contacts += 1
          $0.answers += 1
        }
        if case .unavailable(_, let rest?) = outcome {
          rests[server] = (now, now + min(rest, .seconds(300)))
        }
      case .lost: measured(server, at: now)
      case .failed: met(server, at: now)
      // It had no time to show how the server is.
      case .cancelled: break
      }
    }
  }

  /// Counts from here again when a server became known.
  private mutating func see(
    _ server: Server.ID, at now: MonotonicInstant, _ change: (inout Sight) -> Void
  ) {
    let wasKnown = sights[server].isKnown
    change(&sights[server])
    if !wasKnown, sights[server].isKnown { beginAnew(at: now) }
  }

  private mutating func beginAnew(at now: MonotonicInstant) {
    lastNews = now
    requestsSince = 0
    unsettled = 0
  }
}
