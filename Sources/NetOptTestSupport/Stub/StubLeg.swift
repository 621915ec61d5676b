import NetOptCore

/// Opens one connection of a `StubTransport` as the script decides.
struct StubLeg: Sendable {
  let connection: StubTransport.Connection
  /// The longest time from the start until the connection is ready.
  let limit: Duration
  /// Whether the leg may use a pooled connection, and whether a new HTTP/2 connection enters the pool. A new
  /// HTTP/1.1 connection enters the pool only at the end of its response (`StubBody`).
  let isKept: Bool

  private var destination: StubTransport.Destination { connection.destination }
  private var origin: Origin { connection.origin }

  /// Opens a new connection.
  ///
  /// - Parameter connected: called when TCP is connected.
  /// - Returns: when TCP was connected, on the clock of the transport.
  /// - Throws: `LegError` with the reason why the connection did not become ready.
  func open(
    on transport: StubTransport, connected: @Sendable () -> Void = {}
  ) async throws(LegError) -> MonotonicInstant {
    let destination = destination
    let outcome = transport.state.update { state in
      if case .address(let address) = destination { state.opened.append(address) }
      return state.outcome(of: destination)
    }
    let clock = transport.timeSource
    let start = clock.now()
    let end = start + limit
    /// Waits until `time` after the start. If the limit is earlier, waits until the limit and fails with
    /// `timeout`.
    func take(_ time: Duration, timeout: LegFailure.Kind) async throws(LegError) {
      try await sleep(until: min(start + time, end), on: clock)
      if start + time > end { throw failure(timeout) }
    }

    if case .tcp(let kind) = outcome.connection {
      if kind == .connectTimeout { try await sleep(until: end, on: clock) }
      try await take(outcome.connectTime, timeout: .connectTimeout)
      throw failure(kind)
    }
    try await take(outcome.connectTime, timeout: .connectTimeout)
    connected()
    let connectedAt = clock.now()
    guard origin.scheme == .https else { return connectedAt }
    if case .tls(.tlsTimeout) = outcome.connection { try await sleep(until: end, on: clock) }
    try await take(outcome.connectTime + outcome.tlsTime, timeout: .tlsTimeout)
    if case .tls(let kind) = outcome.connection { throw failure(kind) }
    if case .certificate(let kind) = outcome.connection, connection.isVerified { throw failure(kind) }
    if isKept, connection.multiplexes { transport.keep(connection) }
    return connectedAt
  }

  /// Performs `Transport.connect`: takes a pooled connection or opens a new one, and reports the durations.
  /// Fails when the transport shuts down.
  func connect(on transport: StubTransport) async throws(LegError) -> ConnectReport {
    if isKept, transport.take(connection) { return ConnectReport(connect: .zero, reused: true) }
    let clock = transport.timeSource
    let start = clock.now()
    let outcome = await withTaskGroup(of: Result<MonotonicInstant, LegError>?.self) { group in
      group.addTask {
        do throws(LegError) { return .success(try await open(on: transport)) } catch {
          return .failure(error)
        }
      }
      group.addTask {
        // Returns `nil` when the group cancels this task, after the other task has ended.
        await transport.state.wait { $0.isShutDown } ? .failure(StubTransport.shutDownLegError) : nil
      }
      defer { group.cancelAll() }
      return await group.first { $0 != nil } ?? nil
    }
    let connected = try (outcome ?? .failure(Self.cancelled)).get()
    return ConnectReport(
      connect: connected - start, tls: origin.scheme == .https ? clock.now() - connected : nil)
  }

  private static let cancelled = LegError(
    LegFailure(.other, "the attempt was cancelled"), isInconclusive: true)

  /// Waits until a time on the clock. Does nothing if the time has passed.
  private func sleep(until due: MonotonicInstant, on clock: any TimeSource) async throws(LegError) {
    if due <= clock.now() { return }
    do { try await clock.sleep(until: due) } catch { throw Self.cancelled }
  }

  /// Makes the error for a kind of failure.
  private func failure(_ kind: LegFailure.Kind) -> LegError {
    let peer =
      switch destination {
      case .address(let address): "\(IPEndpoint(address, port: origin.port))"
      case .name: "DNS"
      case .proxy(let url): "the proxy \(url)"
      }
    let what =
      switch kind {
      case .refused: "refused the connection"
      case .connectTimeout: "did not answer within \(limit)"
      case .tlsTimeout: "did not finish the TLS handshake within \(limit)"
      case .certificateName(let names):
        "presented a certificate for \(names.joined(separator: ", ")), not for \(origin.host)"
      case .certificateUntrusted: "presented a certificate that no trusted authority signed"
      case .certificateExpired: "presented a certificate that has expired"
      case .certificatePin: "presented a certificate whose key is not pinned"
      case .reset: "reset the connection"
      case .tls: "failed in the TLS handshake"
      case .unreachable: "cannot be reached from this machine"
      case .silent: "went silent"
      case .busy: "accepted no further request"
      case .unhealthy, .resolve, .nameNotFound, .proxy, .proxyRefused, .authorities, .other: "failed"
      }
    return LegError(LegFailure(kind, "\(peer) \(what)"))
  }
}
