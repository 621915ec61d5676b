import FoundationEssentials
package import NetOptCore
import NetOptRouting

/// One run of the routing policy in a simulated network with a virtual clock. The decisions come from the
/// same `RoutePlanner` and `Race` that the client uses. Servers, DNS and the network follow a scenario drawn
/// from the seed. The simulation records every broken rule.
package final class Simulation {
  /// An event on the virtual clock: an arrival, or the progress of a connection, look-up, response or probe.
  enum Event {
    case arrival(client: Int)
    case connected(Call, attempt: Int, leg: Int)
    case ready(Call, attempt: Int, leg: Int)
    case failed(Call, attempt: Int, leg: Int, LegFailure)
    case lookedUp(Call, attempt: Int, leg: Int, Result<[IPAddress], LegError>)
    case alarm(Call, attempt: Int, number: Int)
    case answer(Call, attempt: Int, CallOutcome)
    case deadline(Call)
    case waitCheck(client: Int)
    case change(Int)
    case probeTime(client: Int, number: Int)
    case probed(
      client: Int, Server.ID, Result<ConnectReport, LegError>, begun: MonotonicInstant, keepsConnection: Bool)
  }

  /// A client: its planner, its pool of connections, and the time of its next probe.
  struct Client {
    var planner: RoutePlanner
    /// The generation of each server's connections when the client opened its pooled connection.
    var pool: [Server.ID: Int] = [:]
    /// The same for connections without verification, which only requests without verification use.
    var unverifiedPool: [Server.ID: Int] = [:]
    /// The plan that was checked last. Most plans equal the plan before.
    var plan: RoutePlan?
    var probeAt: MonotonicInstant?
    var probedAt = Simulation.start
    var probeNumber = 0
    /// The retries left: 20 % of the requests plus 10 per second, saved up for at most 10 s.
    var retryBudget = 10.0
    var retryBudgetAt = Simulation.start
    var retries = 0
    var requests = 0
    var probes = 0
    /// The calls that have sent their request and wait for the response.
    var waiting: [Call] = []
    /// Whether a check of the waiting calls is scheduled.
    var isWaitCheckScheduled = false
    /// When the client last received bytes from each server.
    var lastReceived: [Server.ID: MonotonicInstant] = [:]
  }

  static let start = MonotonicInstant(nanoseconds: 1_000_000_000_000)
  static let connectTimeout = Duration.seconds(10)
  static let today = Date(timeIntervalSince1970: 1_795_219_200)

  let scenario: Scenario
  let origin = Origin(.https, host: "api.example")
  var random: SplitMix64
  var now = Simulation.start
  var queue = EventQueue<Event>()
  var servers: [Server] = []
  var serverIDs: [IPAddress: Int] = [:]
  var lookUps: Scenario.LookUps
  var network = Scenario.Network.up
  var clients: [Client] = []
  var arrivals = 0
  var rules: Rules
  /// What each client has seen of wrong certificates.
  var certificates: [CertificateWatch] = []
  let demand: ((RoutePlan) -> String?)?
  /// The trace of the run; `nil` unless requested, because a run writes a thousand lines.
  package private(set) var trace: [String]?

  /// Makes the run of a seed.
  ///
  /// - Parameters:
  ///   - demand: an additional rule for plans; returns a description of the violation, or `nil`.
  ///   - isTraced: whether the run records a trace of all events.
  package init(seed: UInt64, demand: ((RoutePlan) -> String?)? = nil, isTraced: Bool = false) {
    self.demand = demand
    scenario = Scenario(seed: seed)
    random = SplitMix64(seed: seed ^ 0x5eed)
    trace = isTraced ? [] : nil
    lookUps = scenario.lookUps
    for (number, server) in scenario.servers.enumerated() {
      let address = IPAddress(v4: 0xc000_0201 + UInt32(number))
      servers.append(
        Server(
          address, roundTrip: server.roundTrip, jitter: server.jitter, loss: server.loss,
          service: server.service, at: now))
      serverIDs[address] = number
    }
    rules = Rules(servers: servers.count, at: now)
    let listed = servers.prefix(scenario.listed).map { ListedEndpoint($0.address) }
    let list = EndpointList(hosts: [origin.host: HostEntry(endpoints: listed)])
    for number in 0..<scenario.clients {
      let planner = RoutePlanner(
        list: list, configuration: RoutingConfiguration(policy: scenario.policy),
        seed: seed &* 1_000_003 &+ UInt64(number))
      clients.append(Client(planner: planner))
      certificates.append(CertificateWatch(servers: servers.count))
    }
    for (number, change) in scenario.changes.enumerated() { queue.add(.change(number), at: now + change.at) }
  }

  /// The name of the run's kind.
  package var subject: String { scenario.kind.rawValue }
  /// The broken rules, each with its time.
  package var faults: [String] { rules.faults }
  /// The number of requests and probes.
  package var work: (requests: Int, probes: Int) {
    clients.reduce(into: (0, 0)) {
      $0.0 += $1.requests
      $0.1 += $1.probes
    }
  }

  /// Runs until all requests have ended.
  package func run() {
    for client in clients.indices {
      for address in clients[client].planner.endpoints(toProbe: origin) {
        probe(address.address, client, keepsConnection: true)
      }
      queue.add(.arrival(client: client), at: now + .milliseconds(100 + random.number(in: 0...1000)))
    }
    while let (at, event) = queue.next() {
      now = at
      handle(event)
    }
    checkAtEnd()
  }

  private func handle(_ event: Event) {
    switch event {
    case .arrival(let client): arrive(client)
    case .connected(let call, let attempt, let leg): connected(call, attempt, leg)
    case .ready(let call, let attempt, let leg): ready(call, attempt, leg, isReused: false)
    case .failed(let call, let attempt, let leg, let failure): failed(call, attempt, leg, failure)
    case .lookedUp(let call, let attempt, let leg, let result): lookedUp(call, attempt, leg, result)
    case .alarm(let call, let attempt, let number): alarm(call, attempt, number)
    case .answer(let call, let attempt, let outcome): answered(call, attempt, outcome)
    case .deadline(let call): deadlinePassed(call)
    case .waitCheck(let client): checkWaiting(client)
    case .change(let number): change(scenario.changes[number].change)
    case .probeTime(let client, let number): probeTime(client, number)
    case .probed(let client, let server, let result, let begun, let keepsConnection):
      probed(client, server, result, from: begun, keepsConnection: keepsConnection)
    }
  }

  private func change(_ change: Scenario.Change) {
    switch change {
    case .server(let number, let behaviour):
      note("server \(number + 1) is \(behaviour)")
      certificatesChanged(number, to: behaviour)
      servers[number].become(behaviour, at: now)
      rules.changed(number, to: behaviour, at: now)
    case .lookUps(let lookUps):
      note("DNS: \(lookUps)")
      self.lookUps = lookUps
      rules.lookUpsChange = now
    case .network(let state):
      note("the network is \(state)")
      network = state
      if state == .up { checkAfterOutage() }
      rules.networkChanged(at: now)
    }
  }

  /// Adds a line to the trace.
  func note(_ text: @autoclosure () -> String) {
    guard trace != nil else { return }
    let milliseconds = (now - Self.start).nanoseconds / 1_000_000
    let time = "\(milliseconds / 1000).\(String(1000 + milliseconds % 1000).dropFirst())"
    trace?.append("\(String(repeating: " ", count: max(0, 9 - time.count)))\(time)  \(text())")
  }

  func fault(_ text: String) {
    note("BROKEN: \(text)")
    let milliseconds = (now - Self.start).nanoseconds / 1_000_000
    rules.faults.append("at \(milliseconds) ms: \(text)")
  }
}
