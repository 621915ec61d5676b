import CCurl
import NetOptCore

/// Owns a libcurl multi handle (libcurl-multi(3)) and all work on it. Runs only on the event loop. libcurl's
/// callbacks write to `callbackState`. After each call into libcurl, the actor applies the socket interests.
/// At the end of the turn, `settle` acts on the reported transfers until none is left.
actor CurlMulti: LoopActor {
  nonisolated let loop: EventLoop
  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  let configuration: CurlConfiguration
  /// The TLS settings of the client.
  let tls: ClientTLS
  /// Resolves the DNS leg of a plan.
  let legs: any LegSource
  /// Observes the requests that wait for their responses; `nil` for no observer.
  let waitObserver: (any WaitObserver)?
  let callbackState: CallbackState
  let spareChunks = SpareChunks()
  // Unchecked exclusivity, here and in other state of the loop: while code changes a variable, no other code
  // accesses that variable, because libcurl's callbacks only record events. Run-time checks would take a
  // twentieth of the instructions of a request (docs/adr/0009).
  @exclusivity(unchecked) var connections: ConnectionTable
  /// The transfers whose sockets wait for TCP to connect, by descriptor.
  @exclusivity(unchecked) var connecting: [Int32: Transfer] = [:]

  private let handle: MultiHandle
  /// Fires when libcurl wants to be called next (CURLMOPT_TIMERFUNCTION(3)); made when it is first needed.
  @exclusivity(unchecked) private var timer: MultiTimer?
  /// The probes that wait to dial (`dialInTurn`), in order.
  var dials: [Exchange] = []
  /// Fires in the turn in which the next probe may dial; made when it is first needed.
  var dialTimer: MultiTimer?
  @exclusivity(unchecked) var handshakes = Handshakes<Transfer>()
  /// Fires when the next probe in `handshakes` may begin TLS; made when it is first needed.
  var handshakeTimer: MultiTimer?
  /// Fires when the oldest of `callbackState.newConnections` must show its received bytes again; made when it
  /// is first needed.
  var newConnectionsTimer: MultiTimer?
  /// Fires when netopt tries again to send the frames that nghttp2 keeps (`sendHeldFrames`); made when it is
  /// first needed.
  var heldFramesTimer: MultiTimer?
  /// Connections on which TLS has failed in this turn.
  @exclusivity(unchecked) private var failing: [LiveConnection] = []
  /// The schedule of the looks at waiting requests.
  @exclusivity(unchecked) var waitLooks = WaitLooks()
  @exclusivity(unchecked) private var idleHandles: [EasyHandle] = []
  @exclusivity(unchecked) private var urls = URLHandles()
  /// The exchanges that have not ended, in any order. Each one knows its index (`underWayIndex`).
  @exclusivity(unchecked) private(set) var underWay: [Exchange] = []
  /// The endpoint of the last request whose response was not complete at the call's deadline, and when that
  /// deadline passed.
  var lastUnanswered: (endpoint: IPEndpoint, at: MonotonicInstant)?
  /// The value of `busyEndpoints` that `isBusy` last computed, and until when `isBusy` uses this value.
  var busy = (until: MonotonicInstant(nanoseconds: .min), endpoints: Set<IPEndpoint>())
  @exclusivity(unchecked) private var pendingStarts = PendingStarts()
  // The arrays that `actOnReportedTransfers` and `readMessages` walk, kept so that no turn allocates.
  @exclusivity(unchecked) private var walkedOpened: [Transfer] = []
  @exclusivity(unchecked) private var walkedReady: [Transfer] = []
  @exclusivity(unchecked) private var walkedTouched: [Transfer] = []
  @exclusivity(unchecked) private var walkedEnded: [(Transfer, CURLcode)] = []
  @exclusivity(unchecked) private var isTurnEndRequested = false
  /// Whether the loop's thread was told to observe HTTP/2 frames.
  private var observesFrames = false
  private(set) var isShutDown = false
  /// Called once when no request is under way any more; `nil` unless somebody waits for that.
  var onIdle: (@Sendable () -> Void)?
  /// Whether no request of a call is under way. Probes, warm-ups and the client's own requests do not count.
  var isIdle: Bool { !underWay.contains { $0.purpose == .request && $0.context.id != 0 } }
  /// Whether `retire` was called: the actor takes no new work, and shuts down when the work under way has
  /// ended.
  private(set) var isRetired = false

  /// The most easy handles that are kept for later requests.
  private static let mostIdleHandles = 256

  /// - Throws: `libraryFailed` if libcurl gives no handle; `invalidConfiguration` if it refuses a setting.
  init(
    _ configuration: CurlConfiguration, _ tls: ClientTLS, legs: any LegSource,
    waitObserver: (any WaitObserver)?, counter: TransportCounter, loop: EventLoop
  ) throws(NetOptError) {
    self.configuration = configuration
    self.tls = tls
    connections = ConnectionTable(tls, counter)
    self.legs = legs
    self.waitObserver = waitObserver
    self.loop = loop
    callbackState = CallbackState(counter)
    handle = try MultiHandle(configuration, callbackState: callbackState)
    // A setting that libcurl refuses shows here, not at the first request.
    idleHandles.append(try EasyHandle(configuration, callbackState: callbackState))
  }

  private var raw: UnsafeMutableRawPointer { handle.raw }

  // MARK: Exchanges

  /// Adds an exchange to `underWay`, and schedules a look at the waiting requests if none is scheduled.
  func add(_ exchange: Exchange) {
    exchange.underWayIndex = underWay.count
    underWay.append(exchange)
    if !waitLooks.isDue { scheduleWaitLook(in: WaitLooks.interval) }
  }

  /// Removes an exchange from `underWay`. Does nothing if the exchange is not there.
  func remove(_ exchange: Exchange) {
    guard exchange.underWayIndex >= 0 else { return }
    let last = underWay.removeLast()
    if last !== exchange {
      underWay[exchange.underWayIndex] = last
      last.underWayIndex = exchange.underWayIndex
    }
    exchange.underWayIndex = -1
    if isRetired { requestTurnEnd() }
    if onIdle != nil, isIdle { onIdle.take()?() }
    if underWay.isEmpty { spareChunks.removeAll() }
  }

  /// Adds a leg's transfer to the multi handle.
  func start(_ transfer: Transfer) throws(NetOptError) {
    if !observesFrames {
      FrameObserver.start()
      observesFrames = true
    }
    let code = curl_multi_add_handle(raw, transfer.easy.raw)
    guard code == CURLM_OK else { throw failure("curl_multi_add_handle", code) }
    if let endpoint = transfer.endpoint, let socket = transfer.exchange.group?.onlySocket(to: endpoint) {
      pendingStarts.add(socket)
    }
    requestTurnEnd()
  }

  /// Takes a transfer off the multi handle, whatever its state. Keeps the transfer's easy handle for later
  /// transfers if the handle can be used again.
  func end(_ transfer: Transfer) {
    transfer.exchange.remove(transfer)
    let isEmptied = transfer.discard()
    curl_multi_remove_handle(raw, transfer.easy.raw)
    let silent = transfer.silentConnection
    transfer.leaveConnection()
    if let silent { endIfUnused(silent) }
    applyInterests()
    connections.ended(transfer)
    // A transfer that waited for a free connection may continue now. libcurl then sets its timer.
    requestTurnEnd()
    if let descriptor = transfer.descriptor, connecting[descriptor] === transfer {
      connecting[descriptor] = nil
    }
    if transfer.takesTurn {
      handshakes.ended(transfer, at: loop.now())
      scheduleHandshake()
    }
    transfer.easy.release()
    if !isEmptied { transfer.easy.dropPiece() }
    // libcurl 7.88 may leave a piece of a paused body in the handle (`multi_done`), so it is not used again.
    if idleHandles.count < Self.mostIdleHandles, !transfer.hasPaused { idleHandles.append(transfer.easy) }
  }

  func urlHandle(for url: HTTPURL) throws(NetOptError) -> URLHandle { try urls.handle(for: url) }

  /// Removes and returns an idle easy handle; makes a new one if there is none.
  func idleHandle() throws(NetOptError) -> EasyHandle {
    if let handle = idleHandles.popLast() { return handle }
    return try EasyHandle(configuration, callbackState: callbackState)
  }

  /// Resumes the transfer of the leg that won, in the given directions.
  func unpause(_ exchange: Exchange, receive: Bool, send: Bool) {
    guard !exchange.state.isFinished, let transfer = exchange.winner else { return }
    transfer.unpause(receive: receive, send: send)
    applyInterests()
    // libcurl delivered the data that it had held back, and that data was faulty.
    if transfer.fault != nil { finished(transfer, CURLE_WRITE_ERROR) }
    requestTurnEnd()
  }

  // MARK: Driving libcurl

  /// Makes the loop call `settle` at the end of this turn.
  func requestTurnEnd() {
    guard !isTurnEndRequested, !isShutDown else { return }
    isTurnEndRequested = true
    loop.atEndOfTurn(self)
  }

  /// Makes libcurl act on an event (curl_multi_socket_action(3)).
  func drive(_ socket: curl_socket_t, _ mask: Int32) {
    var running: Int32 = 0
    let code = curl_multi_socket_action(raw, socket, mask, &running)
    applyInterests()
    // libcurl documents no other code for valid arguments. After any other code the multi handle is unusable.
    guard code == CURLM_OK else { return failAll(failure("curl_multi_socket_action", code)) }
  }

  /// Applies what libcurl reported about sockets during a call: updates the table of connections, and watches
  /// the sockets on the loop. Also ends the connections whose nghttp2 sessions failed during the call.
  func applyInterests() {
    while let session = FrameObserver.takeAbandonedSession() { endConnection(of: session) }
    if FrameObserver.takeHeld() { scheduleHeldFrames() }
    guard callbackState.hasSocketChanges else { return }
    for event in callbackState.socketEvents {
      switch event {
      case .opened(let descriptor, let transfer):
        connections.opened(descriptor, by: transfer)
        connecting[descriptor] = transfer
      case .closed(let descriptor):
        connections.closed(descriptor)
        connecting[descriptor] = nil
      }
    }
    for interest in callbackState.interests {
      // libcurl did not wait for the probe's turn: a timer of libcurl began TLS, or libcurl gave up.
      if let transfer = handshakes.remove({ $0.descriptor == interest.descriptor }) {
        recordTurnWait(transfer)
      }
      if interest.wasClosed { loop.unwatch(interest.descriptor, of: self) }
      switch connections.setInterest(interest.descriptor, interest.readiness) {
      case .watch(let readiness): loop.watch(interest.descriptor, for: readiness, self)
      case .unwatch: loop.unwatch(interest.descriptor, of: self)
      case .unchanged: break
      }
    }
    callbackState.removeSocketChanges()
  }

  /// Handles an event of the loop on a socket: makes libcurl act on the event. If TCP has just connected for
  /// a probe, the probe first waits for its turn to begin TLS (`Handshakes`).
  fileprivate func socketIsReady(_ descriptor: Int32, _ readiness: Readiness) {
    guard !isShutDown else { return }
    guard connections.isWanted(descriptor) else { return loop.unwatch(descriptor, of: self) }
    // A connecting socket becomes writable when it is connected (connect(2)).
    if !connecting.isEmpty, let transfer = connecting.removeValue(forKey: descriptor),
      readiness.isDisjoint(with: .error)
    {
      transfer.connectedAt = loop.now()
      if transfer.takesTurn, readiness.contains(.write) { return postpone(transfer, descriptor) }
    }
    var mask: Int32 = 0
    if readiness.contains(.read) {
      beginTurn(of: descriptor)
      mask |= CURL_CSELECT_IN
    }
    if readiness.contains(.write) { mask |= CURL_CSELECT_OUT }
    if readiness.contains(.error) { mask |= CURL_CSELECT_ERR }
    drive(descriptor, mask)
    if let connection = callbackState.live[descriptor], connection.tlsReader?.hasFailed == true {
      failing.append(connection)
    }
    requestTurnEnd()
  }

  /// Calls libcurl at the moment that libcurl asked for.
  func timerFired() {
    guard !isShutDown else { return }
    drive(CURL_SOCKET_TIMEOUT, 0)
    requestTurnEnd()
  }

  /// Acts, at the end of a turn, on the transfers that callbacks have reported, and on those that are
  /// reported as a result.
  fileprivate func settle() {
    isTurnEndRequested = false
    guard !isShutDown else { return }
    // After handles were added, libcurl asks for a timeout of 0. Handling it may report more transfers. Four
    // rounds normally suffice, and further rounds wait for the next turn.
    var begun: MonotonicInstant?
    for round in 0..<4 {
      repeat { actOnReportedTransfers() } while hasReportedTransfers
      while let connection = failing.popLast() { endIfFailed(connection) }
      guard callbackState.timeout == 0 else { break }
      // A transfer with more data to read asks for a timeout of 0 in each round. So the rounds have a time limit
      // too. Nearly always there is one round, which reads no clock.
      if round == 1 { begun = loop.now() }
      if round > 1, let begun, loop.now() - begun > EventLoop.longestTurn { break }
      callbackState.timeout = nil
      pendingStarts.perform { drive(CURL_SOCKET_TIMEOUT, 0) }
    }
    if hasReportedTransfers { requestTurnEnd() }
    endReceivingTurn()
    if !callbackState.newConnections.isEmpty { scheduleNewConnections() }
    if let timeout = callbackState.timeout { setTimer(timeout) }
    callbackState.timeout = nil
    if isRetired, underWay.isEmpty { shutDown() }
  }

  private var hasReportedTransfers: Bool {
    !callbackState.opened.isEmpty || !callbackState.ready.isEmpty || !callbackState.touched.isEmpty
  }

  /// Acts on each transfer that callbacks have reported so far, and on each transfer that libcurl has ended.
  private func actOnReportedTransfers() {
    if !callbackState.opened.isEmpty {
      swap(&callbackState.opened, &walkedOpened)
      for transfer in walkedOpened { socketOpened(by: transfer) }
      walkedOpened.removeAllOfTurn()
    }
    if !callbackState.ready.isEmpty {
      swap(&callbackState.ready, &walkedReady)
      for transfer in walkedReady { reachedGate(transfer) }
      walkedReady.removeAllOfTurn()
    }
    readMessages()
    if !callbackState.touched.isEmpty {
      swap(&callbackState.touched, &walkedTouched)
      for transfer in walkedTouched { deliver(transfer) }
      walkedTouched.removeAllOfTurn()
    }
  }

  /// Acts on the transfers that libcurl has ended (curl_multi_info_read(3)).
  private func readMessages() {
    var left: Int32 = 0
    while let message = curl_multi_info_read(raw, &left) {
      guard message.pointee.msg == CURLMSG_DONE, let pointer = message.pointee.easy_handle else { continue }
      guard let transfer = EasyHandle.transfer(of: pointer) else { continue }
      let code = CurlCode.cause(of: message.pointee.data.result, transfer.easy.errorText)
      walkedEnded.append((transfer, code))
    }
    guard !walkedEnded.isEmpty else { return }
    // `finished` for one transfer may have ended another one of these transfers and released its handle.
    for (transfer, code) in walkedEnded where transfer.easy.transfer === transfer { finished(transfer, code) }
    walkedEnded.removeAllOfTurn()
  }

  /// Schedules `timer` to fire after a time. -1 cancels it.
  private func setTimer(_ milliseconds: Int) {
    if milliseconds < 0 {
      if let timer { loop.cancel(timer) }
      return
    }
    let timer = self.timer ?? MultiTimer(self) { $0.timerFired() }
    self.timer = timer
    loop.schedule(timer, at: loop.now() + .milliseconds(milliseconds))
  }

  /// Returns the error for a call of libcurl's multi interface that failed.
  private func failure(_ call: String, _ code: CURLMcode) -> NetOptError {
    NetOptError(
      .libraryFailed, phase: .send, "\(call) failed",
      underlying: .init(.curl, code: Int32(code.rawValue), text: String(cString: curl_multi_strerror(code))))
  }

  private func failAll(_ error: NetOptError) {
    while let exchange = underWay.last { fail(exchange, error) }
  }

  // MARK: The end

  /// Takes no new work from now on, and shuts down when the work under way has ended.
  ///
  /// - Returns: the calls that wait for another call's race. They have no work on this multi handle, so the
  ///   caller must start them on another one.
  func retire() -> [Exchange] {
    isRetired = true
    requestTurnEnd()
    let waiting = connections.takeWaiting().filter { !$0.state.isFinished }
    for exchange in waiting {
      exchange.leave()
      remove(exchange)
    }
    return waiting
  }

  /// Fails the work under way and closes everything.
  func shutDown() {
    guard !isShutDown else { return }
    isShutDown = true
    failAll(.shutDown)
    if let timer { loop.cancel(timer) }
    timer = nil
    if let dialTimer { loop.cancel(dialTimer) }
    dialTimer = nil
    dials = []
    if let handshakeTimer { loop.cancel(handshakeTimer) }
    handshakeTimer = nil
    if let newConnectionsTimer { loop.cancel(newConnectionsTimer) }
    newConnectionsTimer = nil
    if let heldFramesTimer { loop.cancel(heldFramesTimer) }
    heldFramesTimer = nil
    if let timer = waitLooks.timer { loop.cancel(timer) }
    waitLooks.timer = nil
    if let timer = callbackState.receiving.timer { loop.cancel(timer) }
    handle.close()
    applyInterests()
    connections.closeAll()
    callbackState.removeTransfers()
    connecting = [:]
    failing = []
    idleHandles = []
  }
}

extension CurlMulti: ReadinessHandler, TurnHandler {
  nonisolated func ready(_ descriptor: Int32, for readiness: Readiness) {
    onLoop((descriptor, readiness)) { $0.socketIsReady($1.0, $1.1) }
  }

  nonisolated func turnEnds() { onLoop(()) { multi, _ in multi.settle() } }
}
