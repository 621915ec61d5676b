import NetOptCore
import Synchronization

/// One call of `CurlTransport`: a race of legs, and the exchange on the one that wins. As a timer it is the call's
/// deadline.
///
/// Unchecked sendable: made by the caller, then handed to the loop, which alone touches its variables; from other
/// threads only `cancel`, `goOnReceiving` and `goOnSending` are called, which hand over work.
final class Exchange: LoopTimer, LoopWork, @unchecked Sendable {
  /// What the exchange is for.
  enum Purpose {
    /// A request.
    case request
    /// A connection to one endpoint, within a limit that is the endpoint's; it ends at the gate.
    case probe
    /// A connection along a whole plan, within a limit that is the caller's; it ends at the gate.
    case warmUp

    /// Whether it is for a connection alone.
    var endsAtGate: Bool { self != .request }
  }

  let request: NetOptRequest
  let plan: RoutePlan
  let context: CallContext
  let bodyBuffer: Int
  let upload: UploadStream?
  let purpose: Purpose
  private let loop: EventLoop
  private let multis: Multis
  private let cancelled = Atomic(false)
  /// Orders the answer before what the caller does with it. The runtime does that too, but when the answer comes before
  /// the caller's task is suspended it does so out of the thread sanitizer's sight.
  private let isAnswered = Atomic(false)

  // Of the loop. Unchecked exclusivity: see CurlMulti.
  /// The multi handle that took the exchange, from its arrival on.
  private var multi: CurlMulti?
  private var caller: UnsafeContinuation<Void, Never>?
  @exclusivity(unchecked) var race: Race
  var raceTimer: RaceTimer?
  /// The legs that are connecting or carry the exchange.
  @exclusivity(unchecked) var transfers: [Transfer] = []
  /// The report of each leg that was started.
  @exclusivity(unchecked) var reports: [RouteReport.Leg] = []
  var lookUp = LookUp()
  var pump: Task<Void, Never>?
  /// Whether the reports are those of the call whose race this one waited for.
  var sharesReports = false
  /// How often the request was sent.
  var sends = 0
  /// How often it came back.
  var returns = Returns()
  /// Whether it was given a connection that was about to end, or silent.
  var wasGivenUselessConnection = false
  @exclusivity(unchecked) var state = ExchangeState.queued
  /// Its place among the exchanges under way.
  var underWayIndex = -1
  /// The connections that it may share; none of them when it wants one of its own.
  private(set) var group: ConnectionGroup?

  /// What a caller is given.
  enum Answer {
    case response(NetOptResponse)
    case connection(ConnectReport)
    case failure(NetOptError)
  }

  private var answer: Answer?

  /// The look-up of the race: a race has one at most.
  struct LookUp {
    /// While it is under way.
    var running: (leg: Int, started: MonotonicInstant, task: Task<Void, Never>)?
    /// How long it took.
    var time = Duration.zero
    /// What it failed of.
    var error: NetOptError?
  }

  init(
    _ purpose: Purpose, _ request: NetOptRequest, along plan: RoutePlan, in context: CallContext,
    on multis: Multis,
    loop: EventLoop, bodyBuffer: Int
  ) {
    self.purpose = purpose
    self.request = request
    self.plan = plan
    self.context = context
    self.multis = multis
    self.loop = loop
    self.bodyBuffer = bodyBuffer
    race = Race(plan, mayBeRepeated: request.mayBeRepeated)
    if case .stream(let length, let iterator) = request.body.source {
      upload = UploadStream(length: length, iterator)
    } else {
      upload = nil
    }
  }

  // MARK: From any thread

  /// Hands the exchange to the loop, and returns when it is answered.
  func perform() async {
    await withTaskCancellationHandler {
      await withUnsafeContinuation { caller in
        self.caller = caller
        if !loop.submit(self) { answer(.failure(.shutDown.with(route: route))) }
      }
    } onCancel: {
      cancel()
    }
    _ = isAnswered.load(ordering: .acquiring)
  }

  /// Takes the answer to a request, when `perform` has returned. Not inlined: what it needs room for would be kept by
  /// every call that waits.
  @inline(never)
  func takeResponse() throws(NetOptError) -> NetOptResponse {
    // Taken out: a response whose body streams leads back here.
    switch answer.take() {
    case .response(let response): return response
    case .failure(let error): throw error
    case .connection, nil: preconditionFailure("a request was answered with a connection, or not at all")
    }
  }

  /// Takes the answer to the wish for a connection, when `perform` has returned.
  @inline(never)
  func takeConnection() throws(LegError) -> ConnectReport {
    switch answer.take() {
    case .connection(let report): return report
    case .failure(let error):
      let failure = reports.last?.failure ?? LegFailure(.other, error.message)
      throw LegError(failure, isCancellation: error.code == .cancelled || error.code == .shutDown)
    case .response, nil: preconditionFailure("a connection was answered with a response, or not at all")
    }
  }

  /// Takes the way to a connection that was wished for along a whole plan, when `perform` has returned.
  func takeRoute() throws(NetOptError) -> RouteReport {
    switch answer.take() {
    case .connection: return route
    case .failure(let error): throw error
    case .response, nil: preconditionFailure("a connection was answered with a response, or not at all")
    }
  }

  /// Makes the caller's answer ready; `resume` hands it over. In two steps, so that nothing here holds on to a response:
  /// who lets go of it last tells the observers, and that is the caller.
  func prepare(_ answer: consuming Answer) {
    if caller != nil, self.answer == nil { self.answer = answer }
  }

  /// Lets the caller have its answer, once.
  func resume() {
    guard let caller = caller.take() else { return }
    isAnswered.store(true, ordering: .releasing)
    caller.resume()
  }

  /// Gives the caller its answer, once.
  func answer(_ answer: consuming Answer) {
    prepare(answer)
    resume()
  }

  /// Ends the exchange, wherever it stands.
  func cancel() {
    cancelled.store(true, ordering: .relaxed)
    submit { multi, exchange in multi.cancel(exchange) }
  }

  /// Has a paused transfer receive again.
  func goOnReceiving() {
    submit { multi, exchange in multi.unpause(exchange, receive: true, send: false) }
  }

  /// Has a transfer that waits for more of the request's body ask again.
  func goOnSending() {
    submit { multi, exchange in multi.unpause(exchange, receive: false, send: true) }
  }

  /// Has something done to the exchange on the loop. Without a loop it has ended already.
  func submit(_ body: @escaping @Sendable (isolated CurlMulti, Exchange) -> Void) {
    _ = loop.submit(ExchangeWork(self, body))
  }

  // MARK: On the loop

  var isCancelled: Bool { cancelled.load(ordering: .relaxed) }

  func now() -> MonotonicInstant { loop.now() }

  func run() {
    guard !state.isFinished else { return }
    if purpose == .request, let upload, upload.endsFirst { return read(upload) }
    if case .readingBody = state { self.multi?.onLoop(self) { $0.remove($1) } }
    state.queueAgain()
    let multi = multis.current
    self.multi = multi
    multi.onLoop(self) { multi, exchange in
      if let failure = exchange.upload?.failure { return multi.fail(exchange, failure) }
      multi.admit(exchange)
    }
  }

  /// Reads a stream that has to end first, and then comes to the loop again. Until then the exchange is under way, so that its deadline,
  /// its caller and the end of everything can end it.
  private func read(_ upload: UploadStream) {
    let multi = multis.current
    self.multi = multi
    multi.onLoop(self) { multi, exchange in
      guard !multi.isShutDown else { return multi.refuse(exchange) }
      exchange.state.readBody()
      multi.add(exchange)
      guard !exchange.isCancelled else { return multi.cancel(exchange) }
      if let deadline = exchange.context.deadline { multi.loop.schedule(exchange, at: deadline) }
      exchange.pump = Task {
        await upload.pump {}
        _ = exchange.loop.submit(exchange)
      }
    }
  }

  override func fire() {
    multi?.onLoop(self) { multi, exchange in
      guard case .readingBody = exchange.state else { return multi.deadlinePassed(exchange) }
      multi.fail(
        exchange,
        NetOptError(
          .timeout, phase: .send,
          "the body's stream, announced with 0 bytes, had not ended at the call's deadline"))
    }
  }

  /// Does something on the exchange's multi handle. Before its arrival there is nothing to be done.
  fileprivate func perform(_ work: ExchangeWork) { multi?.onLoop(work) { $1.body($0, $1.exchange) } }

  /// Whether a leg would be the one that sends the request, now or again.
  func maySend(_ leg: Int) -> Bool { !purpose.endsAtGate && race.maySend(leg) }

  /// The gate: whether this leg may send the request.
  func gate(_ leg: Int) -> Race.Verdict {
    // Whoever asked for a connection has it now.
    if purpose.endsAtGate { return .lost }
    return race.ready(leg)
  }

  /// Gives libcurl more of the request's body.
  func fill(_ buffer: UnsafeMutableRawBufferPointer, from offset: Int) -> UploadStep {
    switch request.body.source {
    case .none: return .bytes(0)
    case .bytes(let bytes):
      let rest = bytes[offset...].prefix(buffer.count)
      buffer.copyBytes(from: rest)
      return .bytes(rest.count)
    case .stream: return upload?.take(buffer) ?? .failed
    }
  }

  /// Begins to share the connections of a group.
  func join(_ group: ConnectionGroup) {
    group.users += 1
    self.group = group
  }

  /// Ends that.
  func leave() {
    group?.users -= 1
    group = nil
  }

  /// Ends being the one whose race others wait for, if it is that.
  ///
  /// - Returns: who waited.
  func leaveRace() -> [Exchange] { group?.release(self) ?? [] }

  func remove(_ transfer: Transfer) {
    // Nearly always there is one.
    if transfers.count == 1, transfers[0] === transfer {
      transfers.removeLast()
    } else {
      transfers.removeAll { $0 === transfer }
    }
  }

  /// The leg that won.
  var winner: Transfer? {
    guard let leg = race.winner else { return nil }
    // By index, because an iterator would retain the array.
    for index in transfers.indices where transfers[index].leg == leg { return transfers[index] }
    return nil
  }

  /// How the request was sent until now.
  var sending: RequestLoss.Sending {
    RequestLoss.Sending(
      mayBeRepeated: request.mayBeRepeated, hasStream: upload?.canRewind == false, count: sends)
  }

  /// The way so far.
  var route: RouteReport {
    var route = RouteReport(plan: plan, legs: reports)
    route.isShared = sharesReports
    return route
  }

  func setReport(of leg: Int, _ change: (inout RouteReport.Leg) -> Void) {
    guard let index = reports.lastIndex(where: { $0.index == leg }) else { return }
    change(&reports[index])
  }
}

/// Something to be done to an exchange on the loop.
private final class ExchangeWork: LoopWork {
  let exchange: Exchange
  let body: @Sendable (isolated CurlMulti, Exchange) -> Void

  init(
    _ exchange: Exchange, _ body: @escaping @Sendable (isolated CurlMulti, Exchange) -> Void
  ) {
    self.exchange = exchange
    self.body = body
  }

  func run() { exchange.perform(self) }
}

/// Fires when the leg in front has had its time.
final class RaceTimer: LoopTimer {
  private unowned let exchange: Exchange
  private let multi: CurlMulti

  init(_ exchange: Exchange, _ multi: CurlMulti) {
    self.exchange = exchange
    self.multi = multi
    super.init()
  }

  override func fire() {
    let exchange = exchange
    multi.onLoop(exchange) { $0.legHadItsTime($1) }
  }
}
