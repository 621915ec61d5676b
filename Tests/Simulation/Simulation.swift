import FoundationEssentials
package import NetOptCore
import NetOptRouting

/// One run of the routing policy in a simulated network with a virtual clock. The decisions come from the
/// same `RoutePlanner` and `Race` that the client uses. Servers, DNS and the network follow a scenario drawn
/// from the seed. The simulation checks the rules (docs/simulation.md) during the run, and records every
/// broken rule.
package final class Simulation {
  /// An event on the virtual clock. `attempt` is the number of the call's attempt (`Call.attempt`) to which
  /// the event belongs. `leg` is the index of the leg in the race of this attempt.
  enum Event {
    /// A request arrives at a client.
    case arrival(client: Int)
    /// The TCP connection of a leg is established.
    case connected(Call, attempt: Int, leg: Int)
    /// The connection of a leg can carry the request.
    case ready(Call, attempt: Int, leg: Int)
    /// The connection attempt of a leg has failed.
    case failed(Call, attempt: Int, leg: Int, LegFailure)
    /// The DNS look-up of a leg has ended.
    case lookedUp(Call, attempt: Int, leg: Int, Result<[IPAddress], LegError>)
    /// A timer of the race has run out. `number` is the number of the timer (`Call.alarmNumber`).
    case alarm(Call, attempt: Int, number: Int)
    /// The attempt ends: with a response, a broken connection, or silence.
    case answer(Call, attempt: Int, CallOutcome)
    /// The time limit of a call (`Call.limit`) has passed.
    case deadline(Call)
    /// A client looks at its requests that wait for responses.
    case waitCheck(client: Int)
    /// The change with this index in `Scenario.changes` happens.
    case change(Int)
    /// The probe timer of a client has run out. `number` is the number of the timer (`Client.probeNumber`).
    case probeTime(client: Int, number: Int)
    /// A probe has ended. `begun` is when the probe began. `keepsConnection`: whether the pool keeps its
    /// connection.
    case probed(
      client: Int, Server.ID, Result<ConnectReport, LegError>, begun: MonotonicInstant, keepsConnection: Bool)
  }

  /// A client: its planner, its pool of connections, and its timers and counters.
  struct Client {
    var planner: RoutePlanner
    /// The servers to which the client has a pooled connection whose certificate was verified. The value is
    /// the server's generation (`Server.generation`) at the time when the client got the connection.
    var pool: [Server.ID: Int] = [:]
    /// As `pool`, for connections without verification. Only requests without verification use them.
    var unverifiedPool: [Server.ID: Int] = [:]
    /// The last plan of the client. Most new plans are identical to it. Only the others are checked.
    var plan: RoutePlan?
    /// When the probe timer will run out; `nil` while it is not set.
    var probeAt: MonotonicInstant?
    /// When the probe timer last ran out; at first the start of the run.
    var probedAt = Simulation.start
    /// The number of the last probe timer that was set. An event of an earlier timer has no effect.
    var probeNumber = 0
    /// How many retries the client may make now, as of `retryBudgetAt`. The budget grows by 0.2 with each
    /// request and by 10 per second, up to 100.
    var retryBudget = 10.0
    /// Until when the growth with time is contained in `retryBudget`.
    var retryBudgetAt = Simulation.start
    /// The number of retries so far.
    var retries = 0
    /// The number of requests so far; retries do not count.
    var requests = 0
    /// The number of probes so far.
    var probes = 0
    /// The calls that have sent their request and wait for the response.
    var waiting: [Call] = []
    /// Whether the event queue has a `waitCheck` event of this client.
    var isWaitCheckScheduled = false
    /// When the client last received a response, or the end of a connection, from each server.
    var lastReceived: [Server.ID: MonotonicInstant] = [:]
  }

  /// The moment on the virtual clock at which every run begins.
  static let start = MonotonicInstant(nanoseconds: 1_000_000_000_000)
  /// The time limit of a connection attempt.
  static let connectTimeout = Duration.seconds(10)
  /// The calendar date for all plans. The lists of the simulation have no expiry date, so it has no effect.
  static let today = Date(timeIntervalSince1970: 1_795_219_200)

  /// The scenario of the run.
  let scenario: Scenario
  /// The origin of all requests.
  let origin = Origin(.https, host: "api.example")
  /// Draws everything that happens during the run, except the draws of scenario and planners, which have
  /// their own generators.
  var random: SplitMix64
  /// The present moment on the virtual clock.
  var now = Simulation.start
  /// The events to come.
  var queue = EventQueue<Event>()
  /// The servers: first those of the endpoint list, then those that only DNS knows.
  var servers: [Server] = []
  /// The index in `servers` of the server at each address.
  var serverIDs: [IPAddress: Int] = [:]
  /// The present behaviour of DNS.
  var lookUps: Scenario.LookUps
  /// The present state of the network.
  var network = Scenario.Network.up
  /// The clients of the run.
  var clients: [Client] = []
  /// The number of requests of all clients so far; retries do not count.
  var arrivals = 0
  /// The records for the checks, and the broken rules.
  var rules: Rules
  /// What each client has seen of wrong certificates, by the client's index.
  var certificates: [CertificateWatch] = []
  /// An additional rule for plans, which returns a description of the violation, or `nil`. The tests break it
  /// on purpose.
  let demand: ((RoutePlan) -> String?)?
  /// The lines of the trace so far, each with its time in seconds; `nil` unless the trace was requested,
  /// because a run writes about a thousand lines.
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
  /// The number of requests and the number of probes of all clients.
  package var work: (requests: Int, probes: Int) {
    clients.reduce(into: (0, 0)) {
      $0.0 += $1.requests
      $0.1 += $1.probes
    }
  }

  /// Runs until no event is left: all requests and probes have ended.
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

  /// Handles an event at its time.
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

  /// Makes a change of the scenario happen.
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

  /// Adds a line to the trace, if there is one.
  func note(_ text: @autoclosure () -> String) {
    guard trace != nil else { return }
    let milliseconds = (now - Self.start).nanoseconds / 1_000_000
    let time = "\(milliseconds / 1000).\(String(1000 + milliseconds % 1000).dropFirst())"
    trace?.append("\(String(repeating: " ", count: max(0, 9 - time.count)))\(time)  \(text())")
  }

  /// Records a broken rule, and notes it in the trace.
  func fault(_ text: String) {
    note("BROKEN: \(text)")
    let milliseconds = (now - Self.start).nanoseconds / 1_000_000
    rules.faults.append("at \(milliseconds) ms: \(text)")
  }
}
