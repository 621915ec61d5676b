import CCurl
import NetOptCore
import NetOptEventLoop

/// Owns a libcurl multi handle (libcurl-multi(3)) and everything that is under way on it. An actor on the event loop:
/// nothing here runs anywhere else.
///
/// libcurl's callbacks write to `records`. After each call into libcurl the socket interests are applied; at the end
/// of the turn `settle` acts on the rest, until nothing is left to act on.
actor CurlMulti {
  nonisolated let loop: EventLoop
  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  let configuration: CurlConfiguration
  let legs: any LegSource
  let records = TurnRecords()
  var connections = ConnectionTable()
  var admission = Admission()
  /// The transfers whose sockets are being connected.
  var connecting: [Int32: Transfer] = [:]

  private let handle: MultiHandle
  private var timer: CurlTimer?
  private var idleHandles: [EasyHandle] = []
  private var urls = URLHandles()
  private var underWay: [Exchange] = []
  private var turnEndIsAsked = false
  private(set) var isShutDown = false

  /// The most handles that are kept for the next request.
  private static let mostIdleHandles = 256

  /// - Throws: `libraryFailed` when libcurl gives no handle; `invalidConfiguration` when it refuses a setting.
  init(_ configuration: CurlConfiguration, legs: any LegSource, loop: EventLoop) throws(NetOptError) {
    self.configuration = configuration
    self.legs = legs
    self.loop = loop
    handle = try MultiHandle(configuration, records: records)
    // A bad certificate file or an unreadable option is found here, not at the first request.
    idleHandles.append(try EasyHandle(configuration, records: records))
  }

  private var raw: UnsafeMutableRawPointer { handle.raw }

  // MARK: Exchanges

  func add(_ exchange: Exchange) {
    exchange.position = underWay.count
    underWay.append(exchange)
  }

  func remove(_ exchange: Exchange) {
    guard exchange.position >= 0 else { return }
    let last = underWay.removeLast()
    if last !== exchange {
      underWay[exchange.position] = last
      last.position = exchange.position
    }
    exchange.position = -1
  }

  /// Adds a leg's transfer to the multi handle.
  func start(_ transfer: Transfer) throws(NetOptError) {
    let code = curl_multi_add_handle(raw, transfer.easy.raw)
    guard code == CURLM_OK else { throw failure("curl_multi_add_handle", code) }
    askForTurnEnd()
  }

  /// Takes a transfer off the multi handle, whatever its state, and keeps its easy handle.
  func end(_ transfer: Transfer) {
    transfer.exchange.transfers.removeAll { $0 === transfer }
    curl_multi_remove_handle(raw, transfer.easy.raw)
    applyInterests()
    connections.ended(transfer)
    // Taking a handle off may let another one go on that waited for its place: libcurl says so by its timer.
    askForTurnEnd()
    if let descriptor = transfer.descriptor, connecting[descriptor] === transfer {
      connecting[descriptor] = nil
    }
    transfer.easy.release()
    if idleHandles.count < Self.mostIdleHandles { idleHandles.append(transfer.easy) }
  }

  func urlHandle(for url: HTTPURL) throws(NetOptError) -> URLHandle { try urls.handle(for: url) }

  func idleHandle() throws(NetOptError) -> EasyHandle {
    if let handle = idleHandles.popLast() { return handle }
    return try EasyHandle(configuration, records: records)
  }

  func unpause(_ exchange: Exchange, receive: Bool, send: Bool) {
    guard !exchange.isOver, let transfer = exchange.winner else { return }
    transfer.unpause(receive: receive, send: send)
    applyInterests()
    askForTurnEnd()
  }

  // MARK: Driving libcurl

  func askForTurnEnd() {
    guard !turnEndIsAsked, !isShutDown else { return }
    turnEndIsAsked = true
    loop.atEndOfTurn(self)
  }

  private func drive(_ socket: curl_socket_t, _ mask: Int32) {
    var running: Int32 = 0
    let code = curl_multi_socket_action(raw, socket, mask, &running)
    applyInterests()
    // The handle is unusable after any other code; none of them is documented to come from valid arguments.
    guard code == CURLM_OK else { return failAll(failure("curl_multi_socket_action", code)) }
  }

  private func applyInterests() {
    for event in records.takeSocketEvents() {
      switch event {
      case .opened(let descriptor, let transfer):
        connections.opened(descriptor, by: transfer)
        connecting[descriptor] = transfer
      case .closed(let descriptor):
        connections.closed(descriptor)
        connecting[descriptor] = nil
      }
    }
    for interest in records.takeInterests() {
      if interest.wasClosed { loop.unwatch(interest.descriptor) }
      if interest.readiness.isEmpty {
        loop.unwatch(interest.descriptor)
      } else {
        loop.watch(interest.descriptor, for: interest.readiness, self)
      }
    }
  }

  fileprivate func socketIsReady(_ descriptor: Int32, _ readiness: Readiness) {
    guard !isShutDown else { return }
    // A socket that is being connected becomes writable when it is (connect(2)).
    if !connecting.isEmpty, let transfer = connecting.removeValue(forKey: descriptor),
      readiness.isDisjoint(with: .error)
    {
      transfer.connectedAt = loop.now()
    }
    var mask: Int32 = 0
    if readiness.contains(.read) { mask |= CURL_CSELECT_IN }
    if readiness.contains(.write) { mask |= CURL_CSELECT_OUT }
    if readiness.contains(.error) { mask |= CURL_CSELECT_ERR }
    drive(descriptor, mask)
    askForTurnEnd()
  }

  fileprivate func timerFired() {
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
    for _ in 0..<4 {
      repeat { actOnRecords() } while hasRecords
      guard records.timeout == 0 else { break }
      records.timeout = nil
      drive(CURL_SOCKET_TIMEOUT, 0)
    }
    if hasRecords { askForTurnEnd() }
    if let timeout = records.timeout { setTimer(timeout) }
    records.timeout = nil
  }

  private var hasRecords: Bool {
    !records.opened.isEmpty || !records.ready.isEmpty || !records.touched.isEmpty
  }

  private func actOnRecords() {
    let opened = records.opened
    records.opened.removeAll(keepingCapacity: true)
    for transfer in opened { socketOpened(by: transfer) }
    let ready = records.ready
    records.ready.removeAll(keepingCapacity: true)
    for transfer in ready { cameToGate(transfer) }
    readMessages()
    let touched = records.touched
    records.touched.removeAll(keepingCapacity: true)
    for transfer in touched { deliver(transfer) }
  }

  private func readMessages() {
    var left: Int32 = 0
    while let message = curl_multi_info_read(raw, &left) {
      guard message.pointee.msg == CURLMSG_DONE, let pointer = message.pointee.easy_handle else { continue }
      let code = message.pointee.data.result
      guard let transfer = transfer(of: pointer) else { continue }
      finished(transfer, code)
    }
  }

  private func transfer(of pointer: UnsafeMutableRawPointer) -> Transfer? {
    var data: UnsafeMutableRawPointer?
    netopt_getinfo_pointer(pointer, CURLINFO_PRIVATE, &data)
    // The private pointer is the `EasyHandle` that owns this handle.
    return data.flatMap { Unmanaged<EasyHandle>.fromOpaque($0).takeUnretainedValue().transfer }
  }

  private func setTimer(_ milliseconds: Int) {
    if milliseconds < 0 {
      if let timer { loop.cancel(timer) }
      return
    }
    let timer = self.timer ?? CurlTimer(self)
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

  /// Fails what is under way and closes everything.
  func shutDown() {
    guard !isShutDown else { return }
    failAll(.shutDown)
    isShutDown = true
    if let timer { loop.cancel(timer) }
    timer = nil
    handle.close()
    applyInterests()
    records.removeTransfers()
    connecting = [:]
    idleHandles = []
  }
}

extension CurlMulti: ReadinessHandler, TurnHandler {
  nonisolated func ready(_ descriptor: Int32, for readiness: Readiness) {
    assumeIsolated { $0.socketIsReady(descriptor, readiness) }
  }

  nonisolated func turnEnds() { assumeIsolated { $0.settle() } }
}

extension NetOptError {
  static let shutDown = NetOptError(
    .shutDown, phase: .send, "the client has been shut down; make a new one for more requests")
}

/// libcurl's timer on the loop.
private final class CurlTimer: LoopTimer {
  private unowned let multi: CurlMulti

  init(_ multi: CurlMulti) {
    self.multi = multi
    super.init()
  }

  override func fire() { multi.assumeIsolated { $0.timerFired() } }
}
