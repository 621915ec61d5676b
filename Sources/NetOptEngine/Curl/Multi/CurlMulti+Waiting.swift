import CCurl
import NetOptCore

// Looks at requests while they wait for their responses. Without these looks, netopt would notice a silent
// endpoint only at the deadlines of its requests (docs/adr/0029).

/// The schedule of a multi handle's looks at waiting requests.
struct WaitLooks {
  /// The usual time between two looks. It is also the shortest.
  static let interval = Duration.milliseconds(100)

  /// Starts the next look when it fires; made when the first look is scheduled.
  var timer: MultiTimer?
  /// Whether the next look is scheduled.
  var isDue = false
  /// Whether the last look found a request that waits for its response.
  var sawSome = false
}

extension CurlMulti {
  /// How long a request has to wait before a look includes it.
  private static let shortestWait = Duration.milliseconds(100)
  /// How long a call waits for a connection to an endpoint while requests occupy all connections that the
  /// limit allows. The call then starts its next leg.
  private static let longestQueue = Duration.milliseconds(250)
  /// After the response is complete, the call ends when libcurl has taken nothing more of the request's body
  /// for this time.
  private static let longestRest = Duration.milliseconds(500)
  /// The largest body, in bytes, that counts as sent as soon as libcurl has it: about what TCP sends at once
  /// (RFC 6928).
  private static let largestWholeBody = 14 * 1024
  /// After a look, the next look begins no sooner than this many times the look's duration. So the looks take
  /// about 1 % of the loop's time at most.
  private static let share = 100

  /// Schedules the next look at the waiting requests.
  func scheduleWaitLook(in time: Duration) {
    guard waitObserver != nil else { return }
    waitLooks.isDue = true
    let timer = waitLooks.timer ?? MultiTimer(self) { $0.performWaitLook() }
    waitLooks.timer = timer
    loop.schedule(timer, at: loop.now() + time)
  }

  /// Looks at the waiting requests, and schedules the next look if a call still has no response.
  func performWaitLook() {
    waitLooks.isDue = false
    // Requests that wait in a network that this machine has left say nothing about the endpoints.
    guard let waitObserver, !isShutDown, !isRetired else { return }
    // libcurl also reads when no socket has an event, so `socketIsReady` may miss a failure.
    for connection in callbackState.live.ready { endIfFailed(connection) }
    reassignUnwritten()
    leaveLongQueues()
    let someWait = completeAnswered()
    let time = lookAtWaiting(with: waitObserver)
    // A request whose body arrives does not wait. The next request schedules a look again.
    if someWait || waitLooks.sawSome || underWay.contains(where: { $0.state.body == nil }) {
      scheduleWaitLook(in: time)
    }
  }

  /// Takes requests from HTTP/2 connections on which the server allows no stream, and lets the next legs send
  /// them. A server may allow no stream for a time or for good. A connection on which another request was
  /// written keeps its requests.
  private func reassignUnwritten() {
    let now = loop.now()
    var waiting: [Transfer] = []
    var inUse = Set<ObjectIdentifier>()
    for exchange in underWay where exchange.purpose == .request {
      guard let transfer = exchange.winner, transfer.speaksHTTP2 == true, let connection = transfer.connection
      else { continue }
      if transfer.waitsAfterRefusal { continue }
      if !transfer.waitsForStream {
        inUse.insert(ObjectIdentifier(connection))
      } else if let ready = transfer.readyAt, now - ready >= Self.shortestWait {
        waiting.append(transfer)
      }
    }
    var blamed = Set<ObjectIdentifier>()
    for transfer in waiting {
      // The server may allow streams again soon. So a request without another address to try keeps waiting.
      // For a request that moves, the race tries this leg once more after all other legs have failed.
      guard let connection = transfer.connection.map(ObjectIdentifier.init), !inUse.contains(connection),
        !transfer.exchange.state.isFinished, transfer.exchange.race.hasUntriedAddress
      else { continue }
      transfer.exchange.race.tryAgainLast(transfer.leg)
      // All requests on the connection wait for the same reason, so only one failure counts against the
      // endpoint.
      let kind: LegFailure.Kind = blamed.insert(connection).inserted ? .busy : .other
      let failure = LegFailure(kind, "\(transfer.peer) \(Transfer.noStream)")
      _ = reassign(transfer, after: transfer.loss, because: failure)
    }
  }

  /// Ends the calls whose responses are complete although a part of the request is unsent. Such a call ends
  /// when libcurl has had no room to send more of the request for `longestRest`. Before that, the server may
  /// still be reading the request, and may need the rest of it.
  ///
  /// - Returns: whether such a call is left.
  private func completeAnswered() -> Bool {
    let now = loop.now()
    let answered = underWay.compactMap(\.winner).filter(\.waitsBehindAnswer)
    var isOneLeft = false
    for transfer in answered {
      if let sent = transfer.sentAt, now - sent < Self.longestRest {
        isOneLeft = true
      } else {
        completed(transfer)
      }
    }
    return isOneLeft
  }

  /// Lets the observer look at the waiting requests, and takes the requests that the observer names from
  /// their endpoints.
  ///
  /// - Returns: the time until the next look.
  private func lookAtWaiting(with observer: any WaitObserver) -> Duration {
    let now = loop.now()
    var transfers: [Transfer] = []
    var waiting: [WaitingRequest] = []
    var known: [Int32: Progress] = [:]
    for exchange in underWay {
      guard let transfer = Self.waitingTransfer(of: exchange), let sent = transfer.readyAt,
        now - sent >= Self.shortestWait, let address = transfer.endpoint?.address
      else { continue }
      // If the connection or its state is unknown, the observer is told that data has just arrived and that
      // all sent data is acknowledged.
      var progress = Progress(lastReceived: now, delivery: .acknowledged)
      if let descriptor = transfer.connection?.descriptor {
        progress = known[descriptor] ?? Self.progress(on: descriptor, at: now) ?? progress
        known[descriptor] = progress
      }
      transfers.append(transfer)
      waiting.append(
        WaitingRequest(
          origin: exchange.plan.origin, address: address, kind: RequestKind(exchange.request), sent: sent,
          lastReceived: progress.lastReceived, answered: transfer.connection?.lastAnswered,
          delivery: progress.delivery, deadline: exchange.context.deadline,
          isWhole: Self.isWhole(transfer), mayMove: exchange.mayBeAttemptedAgain(avoiding: address),
          isFirst: exchange.context.attempt.map { $0.number == 1 } ?? true))
    }
    guard !waiting.isEmpty || waitLooks.sawSome else { return WaitLooks.interval }
    waitLooks.sawSome = !waiting.isEmpty
    let outcome = observer.observe(waiting: waiting, at: now)
    for request in outcome.taken { take(transfers[request.position], request) }
    if !outcome.silent.isEmpty { leaveQueues(of: Set(outcome.silent)) }
    let lost = zip(transfers, waiting).filter { transfer, request in
      let endpoint = SilentEndpoint(origin: request.origin, address: request.address)
      return request.delivery == .lost && !outcome.silent.contains(endpoint)
    }
    if !lost.isEmpty { abandonConnections(of: lost.map(\.0)) }
    return max(WaitLooks.interval, (loop.now() - now) * Self.share)
  }

  /// The endpoints that owe a request its response, or the rest of its response.
  var busyEndpoints: Set<IPEndpoint> { Set(underWay.compactMap { $0.winner?.endpoint }) }

  /// Starts the next leg of each call that has waited for `longestQueue` because other requests use all
  /// connections to its endpoint. The responses to these requests may be slow, or may have stopped in their
  /// bodies. The race tries the leg that waited once more, after all other legs have failed.
  private func leaveLongQueues() {
    let now = loop.now()
    // Few calls wait that long, so most looks do not compute this set.
    lazy var busy = busyEndpoints
    for exchange in underWay
    where exchange.purpose == .request && !exchange.state.isFinished && exchange.winner == nil {
      guard exchange.race.hasUntriedAddress else { continue }
      for transfer in exchange.transfers where transfer.isQueued {
        guard let endpoint = transfer.endpoint, !exchange.state.isFinished,
          let report = exchange.reports.first(where: { $0.index == transfer.leg }),
          now - exchange.context.started - report.started >= Self.longestQueue, busy.contains(endpoint)
        else { continue }
        exchange.race.tryAgainLast(transfer.leg)
        leaveQueue(transfer, because: "all connections to \(transfer.peer) were in use")
      }
    }
  }

  /// Ends a leg that waits for a connection, and starts the next leg. Does not blame the endpoint.
  private func leaveQueue(_ transfer: Transfer, because reason: String) {
    let exchange = transfer.exchange
    note(transfer, .failed, LegFailure(.other, reason))
    end(transfer)
    follow(exchange.race.failed(transfer.leg), in: exchange)
  }

  /// Starts the next legs of calls that wait for a connection to a silent endpoint. All connections that the
  /// limit allows are open, and requests without a response occupy them. A request whose stream the endpoint
  /// refused moves to the next leg too: libcurl may be waiting for another connection for it.
  private func leaveQueues(of silent: Set<SilentEndpoint>) {
    for exchange in underWay where exchange.purpose == .request && !exchange.state.isFinished {
      // A call without another leg keeps waiting.
      guard exchange.race.hasUntried else { continue }
      func isAtSilent(_ transfer: Transfer) -> Bool {
        guard let address = transfer.endpoint?.address else { return false }
        return silent.contains(SilentEndpoint(origin: exchange.plan.origin, address: address))
      }
      if let winner = exchange.winner {
        if winner.waitsAfterRefusal, isAtSilent(winner) { _ = reassign(winner, after: winner.loss) }
        continue
      }
      let queued = exchange.transfers.filter { $0.isQueued && isAtSilent($0) }
      for transfer in queued where !exchange.state.isFinished {
        // The observer has already blamed the endpoint.
        leaveQueue(transfer, because: "\(transfer.peer) went silent, and all connections to it are in use")
      }
    }
  }

  /// The transfer of a call that sent its request to an endpoint of the list and has no complete response
  /// head.
  private static func waitingTransfer(of exchange: Exchange) -> Transfer? {
    // A request that netopt makes itself, to look at an endpoint, has the call id 0.
    guard exchange.state.body == nil, exchange.purpose == .request, exchange.context.id != 0,
      !exchange.state.isFinished,
      let transfer = exchange.winner, exchange.race.legs[transfer.leg].source == .list,
      !transfer.isHeadComplete, !transfer.waitsAfterRefusal
    else { return nil }
    return transfer
  }

  /// Whether the whole request counts as sent: it has no body, or a body of at most `largestWholeBody` that
  /// libcurl has taken whole. If false, the caller or the connection may still be sending the request, and
  /// the wait for the response says nothing about the server.
  private static func isWhole(_ transfer: Transfer) -> Bool {
    switch transfer.exchange.request.body.source {
    case .none: true
    case .bytes(let bytes): bytes.count <= largestWholeBody && transfer.sentBody.bytes == bytes.count
    case .stream: false
    }
  }

  /// The state of a connection in the kernel.
  private struct Progress {
    /// When data last arrived on the connection.
    let lastReceived: MonotonicInstant
    /// Whether the peer has acknowledged the data sent on the connection.
    let delivery: WaitingRequest.Delivery
  }

  /// Asks the kernel for the state of a connection; `nil` if the kernel does not give it.
  private static func progress(on descriptor: Int32, at now: MonotonicInstant) -> Progress? {
    progress(of: descriptor).map { Progress(lastReceived: now + (.zero - $0.silence), delivery: $0.delivery) }
  }

  /// Ends an attempt whose endpoint or connection has gone silent, so that the call may try another address.
  /// Keeps other requests off the connection.
  private func take(_ transfer: Transfer, _ taken: TakenRequest) {
    let exchange = transfer.exchange
    guard !exchange.state.isFinished else { return }
    let idle = idleTime(of: transfer)
    if taken.isOfConnection, let idle, transfer.speaksHTTP2 != true {
      transfer.bundles.noteIdleLoss(of: transfer.endpoint, idleFor: idle, at: loop.now())
    }
    abandonConnection(of: transfer, idleFor: idle)
    let failure = taken.failure
    exchange.setReport(of: transfer.leg) { $0.failure = failure }
    fail(
      exchange,
      NetOptError(
        .receiveFailed, phase: .receive, "\(transfer.peer) had not answered: \(failure.message)",
        endpoint: transfer.endpoint, isRetryable: true))
  }

  /// How long the connection of a lost request had been idle when the request was sent; `nil` when idleness
  /// cannot be the reason for the loss.
  private func idleTime(of transfer: Transfer) -> Duration? {
    guard let connection = transfer.connection, let sent = transfer.readyAt,
      let progress = Self.progress(on: connection.descriptor, at: loop.now()), progress.delivery == .lost,
      sent - progress.lastReceived >= OriginBundles.shortestIdle
    else { return nil }
    return sent - progress.lastReceived
  }

  /// Marks the connection of a request that waits in vain as silent, so that no other request uses it.
  ///
  /// - Parameter idle: how long the connection had been idle before the request, if idleness may be the
  ///   reason for the loss; otherwise `nil`. Other connections that have been idle for as long are then ended
  ///   too.
  private func abandonConnection(of transfer: Transfer, idleFor idle: Duration?) {
    guard let connection = transfer.connection, !connection.isSilent else { return }
    connection.isSilent = true
    // New transfers get a new bundle, so libcurl gives them none of the connections that are open now.
    transfer.bundles.renewBundles(of: transfer.connectionClass, to: transfer.endpoint, at: loop.now())
    if let idle { endIdle(besides: connection, for: idle) }
  }

  /// The transfers that wait for one of the limited number of connections to an endpoint.
  private struct Queue: Hashable {
    /// The identity of the origin's `OriginBundles`, which stands for the origin.
    let origin: ObjectIdentifier
    /// `nil` for a proxy.
    let endpoint: IPEndpoint?
    /// The connections of libcurl's pool that the transfers may use.
    let connections: ConnectionClass

    init(_ transfer: Transfer) {
      origin = ObjectIdentifier(transfer.bundles)
      endpoint = transfer.endpoint
      connections = transfer.connectionClass
    }
  }

  /// Abandons connections that had been idle and then lost a request. No other request uses them any more.
  ///
  /// - A request that must not be sent again keeps its connection until the call's deadline, because the
  ///   connection may work again.
  /// - Lost connections count towards the limit of connections to the endpoint. So calls that wait for one of
  ///   them start again in a new bundle, where they can open new connections.
  /// - A connection that had not been idle stays in use: the cause of its loss would affect a new connection
  ///   too.
  ///
  /// - Parameter lost: the transfers whose requests are lost (`WaitingRequest.Delivery.lost`).
  private func abandonConnections(of lost: [Transfer]) {
    var left: Set<Queue> = []
    // The kernel is asked once for each connection.
    for transfer in lost where transfer.connection?.isSilent == false {
      guard let idle = idleTime(of: transfer) else { continue }
      abandonConnection(of: transfer, idleFor: idle)
      left.insert(Queue(transfer))
    }
    if left.isEmpty { return }
    for exchange in underWay
    where exchange.purpose == .request && !exchange.state.isFinished && exchange.winner == nil {
      let queued = exchange.transfers.filter { $0.isQueued && left.contains(Queue($0)) }
      for transfer in queued where !exchange.state.isFinished {
        exchange.race.tryAgainNext(transfer.leg)
        leaveQueue(transfer, because: "the connections to \(transfer.peer) that it waited for are dead")
      }
    }
  }

  /// Ends the idle connections that are probably lost too, whatever their endpoint, so that the next attempt
  /// uses none of them. A NAT device or firewall forgets a connection that carries nothing for some time.
  /// When it has forgotten one connection, it has also forgotten all connections that were idle for at least
  /// as long.
  ///
  /// - Parameters:
  ///   - lost: the connection that is known to be lost.
  ///   - idle: how long the lost connection had been idle.
  private func endIdle(besides lost: LiveConnection, for idle: Duration) {
    let now = loop.now()
    for connection in callbackState.live.ready where connection !== lost && connection.isIdle {
      guard let other = Self.progress(on: connection.descriptor, at: now),
        now - other.lastReceived >= idle
      else { continue }
      connection.end()
    }
  }

  /// Ends a silent connection whose last stream has ended. libcurl would keep the connection in its pool.
  func endIfUnused(_ connection: LiveConnection) {
    guard connection.reader?.budget.streams == 0, callbackState.live[connection.descriptor] === connection
    else {
      return
    }
    connection.end()
  }
}

extension Exchange {
  /// Whether the call may attempt its request again, and its plan has another address to try.
  fileprivate func mayBeAttemptedAgain(avoiding address: IPAddress) -> Bool {
    request.mayBeRepeated && (context.attempt?.number ?? 1) < request.options.maxAttempts
      && plan.avoiding(RoutePlan.Avoidance([address], isStrict: true)) != nil
  }
}

extension Transfer {
  /// Whether the leg waits for a connection: it has opened no socket and has not reached the gate.
  fileprivate var isQueued: Bool { descriptor == nil && verdict == nil }
}
