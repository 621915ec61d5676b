import CCurl
import NetOptCore

/// Owns a libcurl multi handle (libcurl-multi(3)) and everything that is under way on it. An actor on the event loop:
/// nothing here runs anywhere else.
///
/// libcurl's callbacks write to `records`. After each call into libcurl the socket interests are applied; at the end
/// of the turn `settle` acts on the rest, until nothing is left to act on.
actor CurlMulti: LoopActor {
  nonisolated let loop: EventLoop
  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  let configuration: CurlConfiguration
  let legs: any LegSource
  /// Who looks after requests that wait for their answers.
  let waits: (any WaitObserver)?
  let records: TurnRecords
  let spareChunks = SpareChunks()
  // Unchecked exclusivity, here and in what else belongs to the loop: nothing that runs while one of these is changed reaches
  // it again, since callbacks only record. The checks would cost a twentieth of a request (docs/adr/0009).
  @exclusivity(unchecked) var connections = ConnectionTable()
  /// The transfers whose sockets are being connected.
  @exclusivity(unchecked) var connecting: [Int32: Transfer] = [:]

  private let handle: MultiHandle
  @exclusivity(unchecked) private var timer: MultiTimer?
  @exclusivity(unchecked) private var handshakes = Handshakes<Transfer>()
  private var handshakeTimer: MultiTimer?
  private var newConnectionsTimer: MultiTimer?
  /// When the requests that wait are looked at.
  @exclusivity(unchecked) var waitLooks = WaitLooks()
  @exclusivity(unchecked) private var idleHandles: [EasyHandle] = []
  @exclusivity(unchecked) private var urls = URLHandles()
  @exclusivity(unchecked) private(set) var underWay: [Exchange] = []
  /// Where a request last waited in vain for its answer, and until when. Those that waited for its connection fail with it.
  var lastUnanswered: (endpoint: IPEndpoint, at: MonotonicInstant)?
  /// The last `busyEndpoints` of `isBusy`, and until when it uses them.
  var busy = (until: MonotonicInstant(nanoseconds: .min), endpoints: Set<IPEndpoint>())
  @exclusivity(unchecked) private var launches = Launches()
  // Records that are walked are swapped with these, so that no turn allocates.
  @exclusivity(unchecked) private var walkedOpened: [Transfer] = []
  @exclusivity(unchecked) private var walkedReady: [Transfer] = []
  @exclusivity(unchecked) private var walkedTouched: [Transfer] = []
  @exclusivity(unchecked) private var walkedEnded: [(Transfer, CURLcode)] = []
  @exclusivity(unchecked) private var turnEndIsAsked = false
  /// Whether the loop's thread was told to note HTTP/2 frames.
  private var seesFrames = false
  private(set) var isShutDown = false
  /// Whether it ends when what is under way has ended.
  private(set) var isRetired = false

  /// The most handles that are kept for the next request.
  private static let mostIdleHandles = 256

  /// - Throws: `libraryFailed` when libcurl gives no handle; `invalidConfiguration` when it refuses a setting.
  init(
    _ configuration: CurlConfiguration, legs: any LegSource, waits: (any WaitObserver)?, loop: EventLoop
  ) throws(NetOptError) {
    self.configuration = configuration
    self.legs = legs
    self.waits = waits
    self.loop = loop
    records = TurnRecords()
    handle = try MultiHandle(configuration, records: records)
    // A setting that libcurl refuses is found here, not at the first request.
    idleHandles.append(try EasyHandle(configuration, records: records))
  }

  private var raw: UnsafeMutableRawPointer { handle.raw }

  // MARK: Exchanges

  func add(_ exchange: Exchange) {
    exchange.underWayIndex = underWay.count
    underWay.append(exchange)
    if !waitLooks.isDue { scheduleWaitLook(in: WaitLooks.interval) }
  }

  func remove(_ exchange: Exchange) {
    guard exchange.underWayIndex >= 0 else { return }
    let last = underWay.removeLast()
    if last !== exchange {
      underWay[exchange.underWayIndex] = last
      last.underWayIndex = exchange.underWayIndex
    }
    exchange.underWayIndex = -1
    if isRetired { askForTurnEnd() }
    if underWay.isEmpty { spareChunks.removeAll() }
  }

  /// Adds a leg's transfer to the multi handle.
  func start(_ transfer: Transfer) throws(NetOptError) {
    if !seesFrames {
      FrameObserver.start()
      seesFrames = true
    }
    let code = curl_multi_add_handle(raw, transfer.easy.raw)
    guard code == CURLM_OK else { throw failure("curl_multi_add_handle", code) }
    if let endpoint = transfer.endpoint, let socket = transfer.exchange.group?.onlySocket(to: endpoint) {
      launches.add(socket)
    }
    askForTurnEnd()
  }

  /// Takes a transfer off the multi handle, whatever its state, and keeps its easy handle.
  func end(_ transfer: Transfer) {
    transfer.exchange.remove(transfer)
    let isEmptied = transfer.discard()
    curl_multi_remove_handle(raw, transfer.easy.raw)
    let silent = transfer.silentConnection
    transfer.leaveConnection()
    if let silent { endIfUnused(silent) }
    applyInterests()
    connections.ended(transfer)
    // Taking a handle off may let another one go on that waited for its place: libcurl says so by its timer.
    askForTurnEnd()
    if let descriptor = transfer.descriptor, connecting[descriptor] === transfer {
      connecting[descriptor] = nil
    }
    if transfer.takesTurn {
      handshakes.ended(transfer, at: loop.now())
      scheduleHandshake()
    }
    transfer.easy.release()
    if !isEmptied { transfer.easy.dropPiece() }
    // libcurl 7.88 may leave a piece of a body that paused in the handle, for the next one that pauses (`multi_done`).
    if idleHandles.count < Self.mostIdleHandles, !transfer.hasPaused { idleHandles.append(transfer.easy) }
  }

  func urlHandle(for url: HTTPURL) throws(NetOptError) -> URLHandle { try urls.handle(for: url) }

  func idleHandle() throws(NetOptError) -> EasyHandle {
    if let handle = idleHandles.popLast() { return handle }
    return try EasyHandle(configuration, records: records)
  }

  func unpause(_ exchange: Exchange, receive: Bool, send: Bool) {
    guard !exchange.state.isFinished, let transfer = exchange.winner else { return }
    transfer.unpause(receive: receive, send: send)
    applyInterests()
    // What libcurl held back was no good.
    if transfer.fault != nil { finished(transfer, CURLE_WRITE_ERROR) }
    askForTurnEnd()
  }

  // MARK: Driving libcurl

  func askForTurnEnd() {
    guard !turnEndIsAsked, !isShutDown else { return }
    turnEndIsAsked = true
    loop.atEndOfTurn(self)
  }

  /// Has libcurl act on an event (curl_multi_socket_action(3)).
  func drive(_ socket: curl_socket_t, _ mask: Int32) {
    var running: Int32 = 0
    let code = curl_multi_socket_action(raw, socket, mask, &running)
    applyInterests()
    // The handle is unusable after any other code; none of them is documented to come from valid arguments.
    guard code == CURLM_OK else { return failAll(failure("curl_multi_socket_action", code)) }
  }

  /// Applies what libcurl reported of sockets and connections during a call.
  private func applyInterests() {
    while let session = FrameObserver.takeGivenUp() { endConnection(of: session) }
    guard records.concernSockets else { return }
    for event in records.socketEvents {
      switch event {
      case .opened(let descriptor, let transfer):
        connections.opened(descriptor, by: transfer)
        connecting[descriptor] = transfer
      case .closed(let descriptor):
        connections.closed(descriptor)
        connecting[descriptor] = nil
      }
    }
    for interest in records.interests {
      // libcurl goes on by itself: it has begun TLS, as its timers may have it do, or has given up.
      if let transfer = handshakes.remove({ $0.descriptor == interest.descriptor }) { hadToWait(transfer) }
      if interest.wasClosed { loop.unwatch(interest.descriptor, of: self) }
      switch connections.wants(interest.descriptor, interest.readiness) {
      case .watch(let readiness): loop.watch(interest.descriptor, for: readiness, self)
      case .unwatch: loop.unwatch(interest.descriptor, of: self)
      case .leave: break
      }
    }
    records.applied()
  }

  fileprivate func socketIsReady(_ descriptor: Int32, _ readiness: Readiness) {
    guard !isShutDown else { return }
    guard connections.isWanted(descriptor) else { return loop.unwatch(descriptor, of: self) }
    // A socket that is being connected becomes writable when it is (connect(2)).
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
    askForTurnEnd()
  }

  /// Has a probe that is connected begin TLS when it is its turn.
  private func postpone(_ transfer: Transfer, _ descriptor: Int32) {
    // It is writable until then, which would keep the loop awake.
    loop.unwatch(descriptor, of: self)
    handshakes.add(transfer, at: loop.now(), isKept: transfer.exchange.request.options.connection == .pooled)
    beginHandshake()
  }

  func beginHandshake() {
    guard !isShutDown else { return }
    let next = handshakes.next(at: loop.now()) { [connections] transfer in
      transfer.descriptor.map { connections.isConnecting($0, by: transfer) } ?? false
    }
    if let next, let descriptor = next.descriptor {
      hadToWait(next)
      loop.watch(descriptor, for: .write, self)
      drive(descriptor, CURL_CSELECT_OUT)
      askForTurnEnd()
    }
    scheduleHandshake()
  }

  private func hadToWait(_ transfer: Transfer) {
    if let connected = transfer.connectedAt { transfer.waitForTurn = loop.now() - connected }
  }

  private func scheduleHandshake() {
    guard let due = handshakes.due else { return }
    let timer = handshakeTimer ?? MultiTimer(self) { $0.beginHandshake() }
    handshakeTimer = timer
    loop.schedule(timer, at: due)
  }

  private func scheduleNewConnections() {
    guard let due = records.newConnections.due else { return }
    let timer = newConnectionsTimer ?? MultiTimer(self) { $0.newConnectionsHadTheirTime() }
    newConnectionsTimer = timer
    loop.schedule(timer, at: due)
  }

  func newConnectionsHadTheirTime() {
    records.newConnections.settle(at: loop.now())
    scheduleNewConnections()
  }

  /// A request waits for a connection that a probe is opening: the probe does not wait for its turn any more.
  func hurryHandshake(with endpoint: IPEndpoint) {
    if handshakes.hurry({ $0.endpoint == endpoint }) { scheduleHandshake() }
  }

  /// Whether a transfer waits to begin TLS, on our account and not its endpoint's.
  func isHeldBack(_ transfer: Transfer) -> Bool { handshakes.contains(transfer) }

  func timerFired() {
    guard !isShutDown else { return }
    drive(CURL_SOCKET_TIMEOUT, 0)
    askForTurnEnd()
  }

  /// Acts on what was recorded, and on what that leads to.
  fileprivate func settle() {
    turnEndIsAsked = false
    guard !isShutDown else { return }
    // libcurl wants its timeout handled at once after handles were added. Some rounds of that are the rule; more
    // would be its own doing, and wait for the next turn.
    var begun: MonotonicInstant?
    for _ in 0..<4 {
      repeat { actOnRecords() } while hasRecords
      guard records.timeout == 0 else { break }
      // A transfer that has read a hundred pieces in one go asks to go on at once.
      let now = loop.now()
      if let begun, now - begun > EventLoop.longestTurn { break }
      begun = begun ?? now
      records.timeout = nil
      launches.perform { drive(CURL_SOCKET_TIMEOUT, 0) }
    }
    if hasRecords { askForTurnEnd() }
    endReceivingTurn()
    if !records.newConnections.isEmpty { scheduleNewConnections() }
    if let timeout = records.timeout { setTimer(timeout) }
    records.timeout = nil
    if isRetired, underWay.isEmpty { shutDown() }
  }

  private var hasRecords: Bool {
    !records.opened.isEmpty || !records.ready.isEmpty || !records.touched.isEmpty
  }

  private func actOnRecords() {
    if !records.opened.isEmpty {
      swap(&records.opened, &walkedOpened)
      for transfer in walkedOpened { socketOpened(by: transfer) }
      walkedOpened.removeAllOfTurn()
    }
    if !records.ready.isEmpty {
      swap(&records.ready, &walkedReady)
      for transfer in walkedReady { cameToGate(transfer) }
      walkedReady.removeAllOfTurn()
    }
    readMessages()
    if !records.touched.isEmpty {
      swap(&records.touched, &walkedTouched)
      for transfer in walkedTouched { deliver(transfer) }
      walkedTouched.removeAllOfTurn()
    }
  }

  private func readMessages() {
    var left: Int32 = 0
    while let message = curl_multi_info_read(raw, &left) {
      guard message.pointee.msg == CURLMSG_DONE, let pointer = message.pointee.easy_handle else { continue }
      guard let transfer = EasyHandle.transfer(of: pointer) else { continue }
      let code = CurlCode.cause(of: message.pointee.data.result, transfer.easy.words)
      walkedEnded.append((transfer, code))
    }
    guard !walkedEnded.isEmpty else { return }
    // The end of one may have ended another, whose handle is then released.
    for (transfer, code) in walkedEnded where transfer.easy.transfer === transfer { finished(transfer, code) }
    walkedEnded.removeAllOfTurn()
  }

  private func setTimer(_ milliseconds: Int) {
    if milliseconds < 0 {
      if let timer { loop.cancel(timer) }
      return
    }
    let timer = self.timer ?? MultiTimer(self) { $0.timerFired() }
    self.timer = timer
    loop.schedule(timer, at: loop.now() + .milliseconds(milliseconds))
  }

  private func failure(_ call: String, _ code: CURLMcode) -> NetOptError {
    NetOptError(
      .libraryFailed, phase: .send, "\(call) failed",
      underlying: .init(.curl, code: Int32(code.rawValue), text: String(cString: curl_multi_strerror(code))))
  }

  private func failAll(_ error: NetOptError) {
    while let exchange = underWay.last { fail(exchange, error) }
  }

  // MARK: The end

  /// Ends everything when what is under way has ended. No new work comes from now on.
  ///
  /// - Returns: the calls that wait for another one's race, which are to go on elsewhere: nothing of them is under way here.
  func retire() -> [Exchange] {
    isRetired = true
    askForTurnEnd()
    let waiting = connections.takeWaiting().filter { !$0.state.isFinished }
    for exchange in waiting {
      exchange.leave()
      remove(exchange)
    }
    return waiting
  }

  /// Fails what is under way and closes everything.
  func shutDown() {
    guard !isShutDown else { return }
    isShutDown = true
    failAll(.shutDown)
    if let timer { loop.cancel(timer) }
    timer = nil
    if let handshakeTimer { loop.cancel(handshakeTimer) }
    handshakeTimer = nil
    if let newConnectionsTimer { loop.cancel(newConnectionsTimer) }
    newConnectionsTimer = nil
    if let timer = waitLooks.timer { loop.cancel(timer) }
    waitLooks.timer = nil
    if let timer = records.receiving.timer { loop.cancel(timer) }
    handle.close()
    applyInterests()
    records.removeTransfers()
    connecting = [:]
    idleHandles = []
  }
}

extension CurlMulti: ReadinessHandler, TurnHandler {
  nonisolated func ready(_ descriptor: Int32, for readiness: Readiness) {
    onLoop((descriptor, readiness)) { $0.socketIsReady($1.0, $1.1) }
  }

  nonisolated func turnEnds() { onLoop(()) { multi, _ in multi.settle() } }
}
