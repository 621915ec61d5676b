import CCurl
import NetOptCore

// Requests that wait for their answers are looked at while they wait: whether their endpoint has gone silent is not to be learned
// from their deadlines alone (docs/adr/0029).

/// When a multi handle looks at the requests that wait.
struct WaitLooks {
  /// How often.
  static let interval = Duration.milliseconds(100)

  var timer: MultiTimer?
  /// Whether the next look is due some time.
  var isDue = false
  /// Whether something waited at the last one.
  var sawSome = false
}

extension CurlMulti {
  /// How long a request waits before it is looked at.
  private static let shortestWait = Duration.milliseconds(100)
  /// How long a call waits for a connection to an endpoint while requests are under way on all that there may be.
  private static let longestQueue = Duration.milliseconds(250)
  /// How long a request whose answer has ended may wait for room to send what is left of it.
  private static let longestRest = Duration.milliseconds(500)
  /// The largest body that is taken to have left as soon as libcurl has it: about what TCP sends at once (RFC 6928).
  private static let largestWholeBody = 14 * 1024
  /// Looking takes one part in so many of the loop's time at most.
  private static let share = 100

  /// Has the requests that wait looked at after a time.
  func scheduleWaitLook(in time: Duration) {
    guard waits != nil else { return }
    waitLooks.isDue = true
    let timer = waitLooks.timer ?? MultiTimer(self) { $0.waitLookIsDue() }
    waitLooks.timer = timer
    loop.schedule(timer, at: loop.now() + time)
  }

  func waitLookIsDue() {
    waitLooks.isDue = false
    // What waits in a network that this machine has left says nothing of the endpoints.
    guard let waits, !isShutDown, !isRetired else { return }
    passOnUnwritten()
    leaveLongQueues()
    let someWait = completeAnswered()
    let time = lookAtWaiting(with: waits)
    // Bodies that come are not waited for. The next request has it go on.
    if someWait || waitLooks.sawSome || underWay.contains(where: { $0.state.body == nil }) {
      scheduleWaitLook(in: time)
    }
  }

  /// Has the next legs send the requests of connections on which the server takes none: HTTP/2 lets it allow no stream, for a time or for good.
  private func passOnUnwritten() {
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
      // It may be for a moment. Without another address that is the better hope, and when no other one takes the request as well.
      guard let connection = transfer.connection.map(ObjectIdentifier.init), !inUse.contains(connection),
        !transfer.exchange.state.isFinished, transfer.exchange.race.hasUntriedAddress
      else { continue }
      transfer.exchange.race.tryAgainLast(transfer.leg)
      // A limit that many requests meet is one failure.
      let kind: LegFailure.Kind = blamed.insert(connection).inserted ? .busy : .other
      let failure = LegFailure(kind, "\(transfer.place) \(Transfer.noStream)")
      _ = passOn(transfer, after: transfer.loss, because: failure)
    }
  }

  /// Ends requests whose answers are complete although part of the request is not sent yet, once the server has read nothing more of it for
  /// `longestRest`. A server that goes on reading may need the rest.
  ///
  /// - Returns: whether others may end so.
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

  /// Has the observer look at the requests that wait, and take some from their endpoints.
  ///
  /// - Returns: in what time to look again.
  private func lookAtWaiting(with observer: any WaitObserver) -> Duration {
    let now = loop.now()
    var transfers: [Transfer] = []
    var waiting: [WaitingRequest] = []
    var known: [Int32: Progress] = [:]
    for exchange in underWay {
      guard let transfer = Self.waitingTransfer(of: exchange), let sent = transfer.readyAt,
        now - sent >= Self.shortestWait, let address = transfer.endpoint?.address
      else { continue }
      // Of a connection that is not known nothing is known.
      var progress = Progress(heard: now, delivery: .acknowledged)
      if let descriptor = transfer.connection?.descriptor {
        progress = known[descriptor] ?? Self.progress(on: descriptor, at: now) ?? progress
        known[descriptor] = progress
      }
      transfers.append(transfer)
      waiting.append(
        WaitingRequest(
          origin: exchange.plan.origin, address: address, kind: RequestKind(exchange.request), sent: sent,
          heard: progress.heard, answered: transfer.connection?.lastAnswered, delivery: progress.delivery,
          deadline: exchange.context.deadline,
          isWhole: Self.isWhole(transfer), mayBeRepeated: exchange.mayBeAttemptedAgain(avoiding: address),
          isFirst: exchange.context.attempt.map { $0.number == 1 } ?? true))
    }
    guard !waiting.isEmpty || waitLooks.sawSome else { return WaitLooks.interval }
    waitLooks.sawSome = !waiting.isEmpty
    let outcome = observer.look(at: waiting, at: now)
    for request in outcome.taken { take(transfers[request.position], request) }
    if !outcome.silent.isEmpty { leaveQueues(of: Set(outcome.silent)) }
    let lost = zip(transfers, waiting).filter { transfer, request in
      let endpoint = SilentEndpoint(origin: request.origin, address: request.address)
      return request.delivery == .lost && !outcome.silent.contains(endpoint)
    }
    if !lost.isEmpty { abandonConnections(of: lost.map(\.0)) }
    return max(WaitLooks.interval, (loop.now() - now) * Self.share)
  }

  /// The endpoints that owe a request its answer, or the rest of it.
  var busyEndpoints: Set<IPEndpoint> { Set(underWay.compactMap { $0.winner?.endpoint }) }

  /// Starts the next leg of each call that has waited for `longestQueue` because other requests use all connections to its endpoint. Their answers
  /// may be slow, or have stopped in their bodies. The leg is tried once more when the others have failed.
  private func leaveLongQueues() {
    let now = loop.now()
    // Few calls wait so long. Most looks need no set.
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
        leaveQueue(transfer, because: "all connections to \(transfer.place) were in use")
      }
    }
  }

  /// Ends a leg that waits for a connection, and starts the next one. The endpoint is not blamed.
  private func leaveQueue(_ transfer: Transfer, because reason: String) {
    let exchange = transfer.exchange
    note(transfer, .failed, LegFailure(.other, reason))
    end(transfer)
    follow(exchange.race.failed(transfer.leg), in: exchange)
  }

  /// Has the next legs begin of calls that wait for a connection to endpoints that do not answer: as many are open as may be, and what
  /// was sent on them keeps them.
  private func leaveQueues(of silent: Set<SilentEndpoint>) {
    for exchange in underWay where exchange.purpose == .request && !exchange.state.isFinished {
      // Without another way it is better to wait.
      guard exchange.race.hasUntried else { continue }
      func isAtSilent(_ transfer: Transfer) -> Bool {
        guard let address = transfer.endpoint?.address else { return false }
        return silent.contains(SilentEndpoint(origin: exchange.plan.origin, address: address))
      }
      if let winner = exchange.winner {
        if winner.waitsAfterRefusal, isAtSilent(winner) { _ = passOn(winner, after: winner.loss) }
        continue
      }
      let queued = exchange.transfers.filter { $0.isQueued && isAtSilent($0) }
      for transfer in queued where !exchange.state.isFinished {
        // The endpoint was blamed already.
        leaveQueue(transfer, because: "\(transfer.place) went silent, and all connections to it are in use")
      }
    }
  }

  /// The transfer of a call whose request was sent to an endpoint of the list, and whose answer has not begun.
  private static func waitingTransfer(of exchange: Exchange) -> Transfer? {
    // What is made beside the calls, to look at an endpoint, has no number.
    guard exchange.state.body == nil, exchange.purpose == .request, exchange.context.id != 0,
      !exchange.state.isFinished,
      let transfer = exchange.winner, exchange.race.legs[transfer.leg].source == .list,
      !transfer.isHeadComplete, !transfer.waitsAfterRefusal
    else { return nil }
    return transfer
  }

  /// Whether a request has left as a whole. What the caller or the connection may still be busy with says nothing of the server.
  private static func isWhole(_ transfer: Transfer) -> Bool {
    switch transfer.exchange.request.body.source {
    case .none: true
    case .bytes(let bytes): bytes.count <= largestWholeBody && transfer.sentBytes == bytes.count
    case .stream: false
    }
  }

  /// What the kernel knows of a connection.
  private struct Progress {
    /// When something last came on it.
    let heard: MonotonicInstant
    let delivery: WaitingRequest.Delivery
  }

  private static func progress(on descriptor: Int32, at now: MonotonicInstant) -> Progress? {
    progress(of: descriptor).map { Progress(heard: now + (.zero - $0.silence), delivery: $0.delivery) }
  }

  /// Ends a call whose endpoint or connection has gone silent, and has its connection carry no others.
  private func take(_ transfer: Transfer, _ taken: TakenRequest) {
    let exchange = transfer.exchange
    guard !exchange.state.isFinished else { return }
    let idle = idleTime(of: transfer)
    if taken.isOfConnection, let idle, transfer.speaksHTTP2 != true {
      transfer.bundles.forgets(transfer.endpoint, idleFor: idle, at: loop.now())
    }
    abandonConnection(of: transfer, idleFor: idle)
    let failure = taken.failure
    exchange.setReport(of: transfer.leg) { $0.failure = failure }
    fail(
      exchange,
      NetOptError(
        .receiveFailed, phase: .receive, "\(transfer.place) had not answered: \(failure.message)",
        endpoint: transfer.endpoint, isRetryable: true))
  }

  /// How long the connection of a lost request had been idle when the request was sent, when that may be why it was lost.
  private func idleTime(of transfer: Transfer) -> Duration? {
    guard let connection = transfer.connection, let sent = transfer.readyAt,
      let progress = Self.progress(on: connection.descriptor, at: loop.now()), progress.delivery == .lost,
      sent - progress.heard >= OriginBundles.shortestIdle
    else { return nil }
    return sent - progress.heard
  }

  /// A request waits in vain on its connection: nobody else uses that any more.
  ///
  /// - Parameter idle: how long the connection was idle before, when that may be why the request was lost.
  private func abandonConnection(of transfer: Transfer, idleFor idle: Duration?) {
    guard let connection = transfer.connection, !connection.isSilent else { return }
    connection.isSilent = true
    // libcurl gives none of the connections that there are to anybody any more.
    transfer.bundles.leave(transfer.connectionClass, to: transfer.endpoint, at: loop.now())
    if let idle { endIdle(besides: connection, for: idle) }
  }

  /// Where transfers wait for one of as many connections as there may be.
  private struct Queue: Hashable {
    let origin: ObjectIdentifier
    let endpoint: IPEndpoint?
    let connections: ConnectionClass

    init(_ transfer: Transfer) {
      origin = ObjectIdentifier(transfer.bundles)
      endpoint = transfer.endpoint
      connections = transfer.connectionClass
    }
  }

  /// Requests were lost with connections that had been idle: nobody else uses these any more. A request that must not be sent again keeps its own to its
  /// deadline, since it may come back. Calls that wait for such a connection get others: those that are lost are among as many as an endpoint
  /// may have. What is lost on a connection that was not idle shows that new ones would fare no better.
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
        leaveQueue(transfer, because: "the connections to \(transfer.place) that it waited for are dead")
      }
    }
  }

  /// Ends the idle connections that are lost as well, as it seems: what is between the two sides forgets those that carry nothing for
  /// a time, and all that were idle as long as one that was forgotten. The attempt elsewhere would meet the next one.
  private func endIdle(besides lost: LiveConnection, for idle: Duration) {
    let now = loop.now()
    for connection in records.live.ready where connection !== lost && connection.isIdle {
      guard let other = Self.progress(on: connection.descriptor, at: now),
        now - other.heard >= idle
      else { continue }
      connection.end()
    }
  }

  /// Ends a silent connection that carries nothing any more: libcurl would keep it.
  func endIfUnused(_ connection: LiveConnection) {
    guard connection.reader?.budget.streams == 0, records.live[connection.descriptor] === connection
    else {
      return
    }
    connection.end()
  }
}

extension Exchange {
  /// Whether another attempt may be made of the call's request, and its plan leads to other addresses as well.
  fileprivate func mayBeAttemptedAgain(avoiding address: IPAddress) -> Bool {
    request.mayBeRepeated && (context.attempt?.number ?? 1) < request.options.maxAttempts
      && plan.avoiding(RoutePlan.Avoidance([address], isStrict: true)) != nil
  }
}

extension Transfer {
  /// Whether its leg waits for one of as many connections as there may be.
  fileprivate var isQueued: Bool { descriptor == nil && verdict == nil }
}
