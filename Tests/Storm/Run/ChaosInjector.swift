import NetOptCore
import NetOptLocking
import NetOptTestSupport

/// Disturbs clients and servers: kills, stops and freezes servers, replaces clients, changes the network.
/// Calm periods alternate with the disturbances; during calm only a request's own plan can disturb it.
final class ChaosInjector: Sendable {
  /// The number of disturbances of each kind so far.
  struct Figures: Sendable {
    var kills = 0
    var stops = 0
    var freezes = 0
    var replacements = 0
    var networkChanges = 0
  }

  private struct State {
    var figures = Figures()
    var calms = 0
    var isCalm = false
  }

  /// How long a disturbed period and a calm period last.
  private static let disturbedTime = Duration.seconds(6)
  private static let calmTime = Duration.seconds(3)
  /// The time from the last disturbance until its effects are over: a client checks for a new network only
  /// after half a second.
  private static let settlingTime = Duration.milliseconds(1200)

  private let origins: StormOrigins
  private let clients: StormClients
  private let changesNetwork: Bool
  private let violations: Violations
  private let seed: UInt64
  private let state = Locked(State())
  private let clock = SystemTimeSource()

  init(
    _ origins: StormOrigins, _ clients: StormClients, seed: UInt64, changesNetwork: Bool,
    _ violations: Violations
  ) {
    self.origins = origins
    self.clients = clients
    self.seed = seed
    self.changesNetwork = changesNetwork
    self.violations = violations
  }

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
      try? await Task.sleep(for: Self.settlingTime)
      state.withLock { state in
        state.calms += 1
        state.isCalm = true
      }
      try? await Task.sleep(for: Self.calmTime)
      state.withLock { $0.isCalm = false }
    }
  }

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
