import NetOptTestSupport

extension Site {
  /// How long a killed server stays down, and how long it then serves before the next server is killed.
  private static let absence = Duration.milliseconds(200)

  /// Begins a fault, and returns when it is active. A restart is over when this returns.
  ///
  /// - Parameter victim: the server that gets the fault, if a single server has it.
  func begin(_ fault: Fault, at victim: FaultyOrigin) async throws {
    switch fault.location {
    case .origin(let word): try await victim.begin(word)
    case .origins(let word): for origin in origins { try await origin.begin(word) }
    case .stopped: victim.freeze()
    case .restart: try await restart(victim)
    case .rollingRestart: for origin in origins { try await restart(origin) }
    case .wire(let word): try await wire?.apply(word)
    case .wireToVictim(let word):
      try await wire?.apply("\(word)-\((origins.firstIndex { $0 === victim } ?? 0) + 1)")
    case .names(let word):
      try await names.apply(word)
      try await victim.begin("refused")
    // `addresses(for:victim:)` already gives clients the address without a route.
    case .noRoute: break
    case .proxy(let word): try await proxy.apply(word)
    }
  }

  /// Ends a fault, and returns when it is over.
  func end(_ fault: Fault, at victim: FaultyOrigin) async throws {
    switch fault.location {
    case .origin: try await victim.end()
    case .origins: for origin in origins { try await origin.end() }
    case .stopped: victim.thaw()
    case .restart, .rollingRestart, .noRoute: break
    case .wire, .wireToVictim: try await wire?.apply("none")
    case .names:
      try await names.apply("none")
      try await victim.end()
    case .proxy: try await proxy.apply("none")
    }
  }

  private func restart(_ origin: FaultyOrigin) async throws {
    origin.kill()
    try await Task.sleep(for: Self.absence)
    try await origin.startAgain()
    // The next server is killed only when this one serves again and clients had time to notice.
    try await Task.sleep(for: Self.absence)
  }
}
