import NetOptCore
import NetOptRouting

/// The course of one run, drawn from a seed: the servers, the clients, and the changes of servers, DNS and
/// network during the run. A server's number is its index in `servers`.
struct Scenario {
  /// The behaviour of DNS.
  enum LookUps: Hashable {
    /// DNS answers with the addresses of the servers with these numbers.
    case answers([Int])
    /// No name server answers.
    case down
    /// DNS answers that the name does not exist.
    case noSuchName
  }

  /// The state of the client's own network.
  enum Network: Hashable {
    /// The network works.
    case up
    /// Packets vanish.
    case silent
    /// There is no route.
    case unreachable
  }

  /// A change during the run.
  enum Change: Hashable {
    /// The server with this number changes its behaviour.
    case server(Int, Server.Behaviour)
    /// DNS changes its behaviour.
    case lookUps(LookUps)
    /// The network changes its state.
    case network(Network)
  }

  /// The kind of a run. It decides which changes the run draws, and which rules apply to the run.
  enum Kind: String, CaseIterable {
    /// Nothing changes, so the leading endpoint must change rarely.
    case calm
    /// Servers die in all the ways that `death` draws. Most come back.
    case deaths
    /// A server stops with its connections open, and usually resumes.
    case stalls
    /// A server goes down and comes back every few seconds.
    case flapping
    /// The responses of one or two servers, or the network paths to them, become slow.
    case slowness
    /// All listed servers die within 3 s; some come back. DNS has the address of a server that works.
    case listDead = "list-dead"
    /// DNS has only the address of a server with a wrong certificate, or of one that drops all packets. Some
    /// listed servers die too. In half of the runs, DNS stops answering later, or answers that the name does
    /// not exist.
    case wrongDNS = "liars"
    /// The network goes away and comes back.
    case outage
    /// A service answers 503, and may ask for rests.
    case unavailable
    /// One or all servers repeatedly present a wrong certificate for a while. Some requests do not verify
    /// certificates.
    case certificates
    /// There are many clients, and the responses of each server get later with its load.
    case highLoad = "crowd"
    /// Servers die. In addition, each of the following may happen: a service answers 503, servers become
    /// slow, the network goes away, and DNS fails.
    case chaos
  }

  let kind: Kind
  /// The properties of each server, which `Server` explains. The servers of the endpoint list come first.
  var servers: [(roundTrip: Double, jitter: Double, loss: Double, service: Double)] = []
  /// The number of servers in the endpoint list. Only DNS can give the addresses of the others.
  var listed = 0
  /// The behaviour of DNS at the start.
  var lookUps = LookUps.answers([])
  /// The number of clients.
  var clients = 1
  /// The routing policy of all clients.
  var policy = SelectionPolicy.fastest
  /// The number of requests of all clients together.
  var requests = 0
  /// The mean time between two requests of one client.
  var pause = Duration.seconds(1)
  /// The percentage of requests that do not verify certificates.
  var unverified: UInt64 = 0
  /// The changes, each with its offset from the start of the run. Earlier changes come first.
  var changes: [(at: Duration, change: Change)] = []

  /// Draws the scenario.
  private var random: SplitMix64

  /// Draws the scenario of a seed. The kind is `seed` modulo the number of kinds.
  init(seed: UInt64) {
    random = SplitMix64(seed: seed)
    kind = Kind.allCases[Int(seed % UInt64(Kind.allCases.count))]
    listed = random.number(in: 2...6)
    let hasLoss = kind == .chaos || kind == .wrongDNS || random.chance(10)
    let jitter = Double(random.number(in: 0...8)) / 100
    for _ in 0..<(listed + random.number(in: 1...2)) {
      servers.append(
        (
          roundTrip: Double(random.number(in: 2...120)), jitter: jitter,
          loss: hasLoss && kind != .calm && kind != .slowness ? Double(random.number(in: 0...5)) / 100 : 0,
          service: Double(random.number(in: 1...20))
        ))
    }
    lookUps = .answers(Array(servers.indices.suffix(random.number(in: 1...3))))
    requests = 90
    pause = random.chance(50) ? .milliseconds(200) : .seconds(8)
    switch kind {
    case .calm: calm()
    case .deaths: deaths(1...4)
    case .stalls: stalls()
    case .flapping: flapping()
    case .slowness: slowness()
    case .listDead: listDead()
    case .wrongDNS: wrongDNS()
    case .outage: outage()
    case .unavailable: unavailable()
    case .certificates: certificates()
    case .highLoad: highLoad()
    case .chaos: chaos()
    }
    changes.sort { $0.at < $1.at }
  }

  /// The approximate length of the run.
  private var length: Duration { pause * Double(requests) / Double(clients) }

  /// Draws a moment of the run, as an offset from its start. `from` and `to` are fractions of the run's
  /// length, between which the moment lies.
  private mutating func moment(_ from: Double = 0, _ to: Double = 1) -> Duration {
    length * Double.random(in: from..<to, using: &random)
  }

  /// Draws a behaviour of a server that no longer works.
  private mutating func death() -> Server.Behaviour {
    let ways: [Server.Behaviour] = [.refusing, .blackHole, .silentTLS, .resetting, .wrongCertificate]
    return ways[random.number(in: 0...ways.count - 1)]
  }

  // MARK: Kinds

  // Each function draws what is special in runs of the kind with its name: changes, and for some kinds also
  // the properties of servers and clients.

  /// Gives the servers nearly equal round trip times, so that the fastest server varies from measurement to
  /// measurement.
  private mutating func calm() {
    let base = Double(random.number(in: 20...150))
    for server in servers.indices {
      servers[server].roundTrip = base * Double.random(in: 1...1.1, using: &random)
      servers[server].jitter = Double(random.number(in: 0...10)) / 100
    }
    pause = .seconds(60)
  }

  /// Lets listed servers die.
  ///
  /// - Parameter count: the range from which the number of deaths is drawn. The same server may die more than
  ///   once.
  private mutating func deaths(_ count: ClosedRange<Int>) {
    for _ in 0..<random.number(in: count) {
      let server = random.number(in: 0...listed - 1)
      let start = moment(0, 0.7)
      changes.append((start, .server(server, death())))
      if random.chance(80) { changes.append((start + moment(0, 0.3), .server(server, .healthy))) }
    }
  }

  private mutating func stalls() {
    pause = random.chance(50) ? .milliseconds(random.number(in: 5...50)) : .seconds(random.number(in: 1...4))
    requests = 400
    // Requests normally use the nearest server. So it is the one that stops in most runs.
    let front = (0..<listed).min { servers[$0].roundTrip < servers[$1].roundTrip } ?? 0
    let server = random.chance(80) ? front : random.number(in: 0...listed - 1)
    let start = moment(0.2, 0.5)
    changes.append((start, .server(server, .silentTLS)))
    if random.chance(80) {
      changes.append((start + .milliseconds(random.number(in: 100...20_000)), .server(server, .healthy)))
    }
  }

  private mutating func flapping() {
    let server = random.number(in: 0...listed - 1)
    let way = death()
    var at = moment(0, 0.3)
    while at < length {
      changes.append((at, .server(server, way)))
      at += .milliseconds(random.number(in: 100...15_000))
      changes.append((at, .server(server, .healthy)))
      at += .milliseconds(random.number(in: 100...15_000))
    }
  }

  private mutating func slowness() {
    for _ in 0..<random.number(in: 1...2) {
      let server = random.number(in: 0...listed - 1)
      let behaviour: Server.Behaviour =
        random.chance(70) ? .slow(random.number(in: 200...2000)) : .distant(random.number(in: 3...8))
      changes.append((moment(0.2, 0.6), .server(server, behaviour)))
    }
  }

  private mutating func listDead() {
    lookUps = .answers([servers.count - 1])
    let start = moment(0, 0.5)
    for server in 0..<listed {
      changes.append((start + .milliseconds(random.number(in: 0...3000)), .server(server, death())))
      if random.chance(50) { changes.append((start + moment(0.1, 0.5), .server(server, .healthy))) }
    }
  }

  private mutating func wrongDNS() {
    let wrongServer = servers.count - 1
    changes.append((.zero, .server(wrongServer, random.chance(50) ? .wrongCertificate : .blackHole)))
    lookUps = .answers([wrongServer])
    if random.chance(50) { changes.append((moment(), .lookUps(random.chance(50) ? .down : .noSuchName))) }
    deaths(1...max(1, listed - 1))
  }

  private mutating func outage() {
    let start = moment(0.2, 0.6)
    changes.append((start, .network(random.chance(50) ? .silent : .unreachable)))
    changes.append((start + .seconds(random.number(in: 12...90)), .network(.up)))
  }

  private mutating func unavailable() {
    let server = random.number(in: 0...listed - 1)
    let rest: Int64? = random.chance(60) ? Int64(random.number(in: 5...60)) : nil
    let start = moment(0.1, 0.5)
    changes.append((start, .server(server, .unavailable(rest: rest))))
    if random.chance(70) { changes.append((start + moment(0.1, 0.5), .server(server, .healthy))) }
  }

  /// Draws one to three periods in which one or all listed servers present a wrong certificate. Either the
  /// server is restarted with this certificate, or another machine takes over its address. A period lasts
  /// from a fraction of a second to minutes.
  private mutating func certificates() {
    if random.chance(40) { unverified = 30 }
    var at = moment(0, 0.3)
    for _ in 0..<random.number(in: 1...3) {
      let isAll = random.chance(40)
      let alone = random.number(in: 0...listed - 1)
      let isRestart = random.chance(70)
      let length: Duration =
        random.chance(60)
        ? .milliseconds(random.number(in: 100...8000)) : .seconds(random.number(in: 10...200))
      for server in 0..<listed where isAll || server == alone {
        // A restarted server first resets its connections.
        if isRestart { changes.append((at, .server(server, .refusing))) }
        changes.append((at + .milliseconds(10), .server(server, .wrongCertificate)))
        let later = Duration.milliseconds(random.number(in: 20...2000))
        changes.append((at + length + later, .server(server, .healthy)))
      }
      at = at + length + .seconds(3) + moment(0, 0.3)
    }
  }

  /// Draws many clients. Each client sends a request every 1 to 3 s on average. Each server has a capacity of
  /// two requests per second for each client, so a single server could carry all clients, but its responses
  /// would get later.
  private mutating func highLoad() {
    clients = random.number(in: 10...30)
    requests = 300
    pause = .seconds(random.number(in: 1...3))
    if random.chance(50) { policy = .balanced }
    let capacity = clients * 2
    for server in 0..<listed { changes.append((.zero, .server(server, .loadDependent(capacity: capacity)))) }
  }

  private mutating func chaos() {
    clients = random.number(in: 1...4)
    policy = SelectionPolicy.allCases[random.number(in: 0...2)]
    requests = 120
    deaths(1...6)
    if random.chance(30) { unavailable() }
    if random.chance(30) { slowness() }
    if random.chance(30) { outage() }
    if random.chance(30) { changes.append((moment(), .lookUps(random.chance(50) ? .down : .noSuchName))) }
  }
}

extension SplitMix64 {
  /// Returns true with a probability of `percent` percent.
  mutating func chance(_ percent: UInt64) -> Bool { below(100) < percent }

  /// A number drawn uniformly from the range.
  mutating func number(in range: ClosedRange<Int>) -> Int {
    range.lowerBound + Int(below(UInt64(range.count)))
  }
}
