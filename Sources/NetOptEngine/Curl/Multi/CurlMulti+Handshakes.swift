import CCurl
import NetOptCore

// The turns in which probes dial, and begin TLS (`Handshakes`)

extension CurlMulti {
  /// How long a probe waits until others have dialled, when the turns of the loop are long.
  private static let longestDialWait = Duration.milliseconds(10)

  /// Lets a probe with TLS dial, at most one in each turn of the loop, so that the loop looks at the sockets
  /// between two dials. When the first probe's server is near, the probe sends its ClientHello before the others
  /// dial, and they dial while the server answers. The times that a probe measures contain at most one dial of
  /// another probe.
  func dialInTurn(_ probe: Exchange) {
    if dialTimer?.isScheduled == true { return dials.append(probe) }
    race(probe)
    scheduleDial()
  }

  /// Lets the next probe dial, and those after it that have waited too long.
  private func dialNext() {
    var hasDialled = false
    while !isShutDown, let probe = dials.first,
      !hasDialled || loop.now() - probe.context.started > Self.longestDialWait
    {
      dials.removeFirst()
      guard !probe.state.isFinished else { continue }
      race(probe)
      hasDialled = true
    }
    if hasDialled, !isShutDown { scheduleDial() }
  }

  /// Schedules `dialNext` for the next turn, after its events.
  private func scheduleDial() {
    let timer = dialTimer ?? MultiTimer(self) { $0.dialNext() }
    dialTimer = timer
    loop.schedule(timer, at: loop.now())
  }

  /// Makes a connected probe wait for its turn to begin TLS.
  func postpone(_ transfer: Transfer, _ descriptor: Int32) {
    // The connected socket is always writable. While the probe waits, that would keep the loop awake.
    loop.unwatch(descriptor, of: self)
    handshakes.add(
      transfer, at: loop.now(), keepsConnection: transfer.exchange.request.options.connection == .pooled)
    beginHandshake()
  }

  /// Lets the next waiting probe begin TLS if it is due.
  func beginHandshake() {
    guard !isShutDown else { return }
    let next = handshakes.next(at: loop.now()) { [connections] transfer in
      transfer.descriptor.map { connections.isConnecting($0, by: transfer) } ?? false
    }
    if let next, let descriptor = next.descriptor {
      recordTurnWait(next)
      loop.watch(descriptor, for: .write, self)
      drive(descriptor, CURL_CSELECT_OUT)
      requestTurnEnd()
    }
    scheduleHandshake()
  }

  /// Records how long a probe waited for its turn. The wait ends now.
  func recordTurnWait(_ transfer: Transfer) {
    if let connected = transfer.connectedAt { transfer.waitForTurn = loop.now() - connected }
  }

  /// Schedules `beginHandshake` for the next waiting probe, if there is one.
  func scheduleHandshake() {
    guard let due = handshakes.due else { return }
    let timer = handshakeTimer ?? MultiTimer(self) { $0.beginHandshake() }
    handshakeTimer = timer
    loop.schedule(timer, at: due)
  }

  /// Lets the probe that opens a connection to an endpoint begin TLS at once, because a request waits for it.
  func prioritizeHandshake(with endpoint: IPEndpoint) {
    if handshakes.prioritize({ $0.endpoint == endpoint }) { scheduleHandshake() }
  }

  /// Whether netopt makes a transfer wait for its turn to begin TLS. The endpoint does not cause this wait.
  func isHeldBack(_ transfer: Transfer) -> Bool { handshakes.contains(transfer) }
}
