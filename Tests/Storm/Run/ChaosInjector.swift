import NetOptCore
import NetOptLocking
import NetOptTestSupport

/// Disturbs clients and servers: kills, stops and freezes nginx servers, replaces clients, and changes the
/// network. Disturbed periods and calm periods alternate. In a calm period, a request can fail only because
/// of its own plan (`RequestPlan.mayFail`).
final class ChaosInjector: Sendable {
  /// The number of disturbances of each kind so far.
  struct Figures: Sendable {
    /// The number of ends with SIGKILL.
    var kills = 0
    /// The number of ends with SIGTERM.
    var stops = 0
    /// The number of pauses with SIGSTOP and SIGCONT.
    var freezes = 0
    /// The number of clients that were replaced.
    var replacements = 0
    /// The number of changes of the default route.
    var networkChanges = 0
  }

  private struct State {
    var figures = Figures()
    /// The number of calm periods that have begun so far.
    var calms = 0
    /// Whether a calm period is under way.
    var isCalm = false
  }

  /// The length of a disturbed period.
  private static let disturbedTime = Duration.seconds(6)
  /// The length of a calm period.
  private static let calmTime = Duration.seconds(3)
  /// The time between the last disturbance and the calm period, in which the effects of the disturbance end.
  /// For example, a client looks for a new network only half a second after the kernel has reported a change.
  private static let settlingTime = Duration.milliseconds(1200)

  private let origins: StormOrigins
  private let clients: StormClients
  /// Whether the process has its own network namespace, whose network may be changed.
  private let changesNetwork: Bool
  private let violations: Violations
  /// Tells how late the effects of a disturbance may be, because the machine is late.
  private let lateness: Lateness
  /// The seed of the storm, which determines the disturbances.
  private let seed: UInt64
  private let state = Locked(State())
  private let clock = SystemTimeSource()

  init(
    _ origins: StormOrigins, _ clients: StormClients, seed: UInt64, changesNetwork: Bool,
    _ violations: Violations, _ lateness: Lateness
  ) {
    self.origins = origins
    self.clients = clients
    self.seed = seed
    self.changesNetwork = changesNetwork
    self.violations = violations
    self.lateness = lateness
  }

  /// The disturbances so far.
  var figures: Figures { state.withLock { $0.figures } }

  /// The number of the current calm period; `nil` outside calm periods.
  var calmNumber: Int? { state.withLock { $0.isCalm ? $0.calms : nil } }

  /// Disturbs clients and servers until the task is cancelled.
  func run() async throws {
    var random = SplitMix64(seed: seed, stream: 3, index: 0)
    while !Task.isCancelled {
      origins.splice.setFaults(true)
      let end = clock.now() + Self.disturbedTime
      while clock.now() < end, !Task.isCancelled {
        try await injectDisturbance(&random)
        try? await Task.sleep(for: .milliseconds(random.number(in: 200...1200)))
      }
      origins.splice.setFaults(false)
      let last = clock.now()
      try? await Task.sleep(for: Self.settlingTime)
      // On a machine that is late, so are the effects: another process that takes the cores for a second keeps
      // a client from reading that a connection has ended.
      try? await Task.sleep(for: lateness.allowance(since: last))
      state.withLock { state in
        state.calms += 1
        state.isCalm = true
      }
      try? await Task.sleep(for: Self.calmTime)
      state.withLock { $0.isCalm = false }
    }
  }

  /// Makes one disturbance, drawn at random. It lasts at most 250 ms. Then an nginx that was stopped is
  /// started again, and a frozen one resumes.
  private func injectDisturbance(_ random: inout SplitMix64) async throws {
    let server = random.chance(50) ? origins.lasting : origins.limited
    let pause = Duration.milliseconds(random.number(in: 0...250))
    let (event, client) = (random.below(100), random.number(in: 0...RequestGenerator.clients - 1))
    switch event {
    case ..<15:
      server.kill()
      try? await Task.sleep(for: pause)
      try await server.start()
      state.withLock { $0.figures.kills += 1 }
    case ..<30:
      server.stop()
      try? await Task.sleep(for: pause)
      try await server.start()
      state.withLock { $0.figures.stops += 1 }
    case ..<50:
      server.freeze()
      try? await Task.sleep(for: pause)
      server.thaw()
      state.withLock { $0.figures.freezes += 1 }
    case ..<75:
      try await replace(client)
    default:
      guard changesNetwork else { return }
      let number = state.withLock { state in
        state.figures.networkChanges += 1
        return state.figures.networkChanges
      }
      try await OwnNetwork.changeGateway(number)
    }
  }

  /// Replaces a client. Adds a violation if the shutdown of the old client takes too long.
  private func replace(_ number: Int) async throws {
    let watch = Task { [violations] in
      try await Task.sleep(for: .seconds(20))
      violations.add(.hang, "the shutdown of client \(number) takes more than 20 s")
    }
    defer { watch.cancel() }
    try await clients.replace(number)
    state.withLock { $0.figures.replacements += 1 }
  }
}
