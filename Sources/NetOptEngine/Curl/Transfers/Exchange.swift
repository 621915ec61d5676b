import NetOptCore
import Synchronization

/// One call of `CurlTransport`: a race of legs, and then the exchange of request and response on the leg that
/// wins. As a timer, the exchange fires at the call's deadline.
///
/// Unchecked sendable: the caller makes the exchange and hands it to the loop. From then on only the loop
/// touches its variables. Other threads call only `cancel`, `resumeReceiving` and `resumeSending`, which
/// submit work to the loop.
final class Exchange: LoopTimer, LoopWork, @unchecked Sendable {
  /// The purpose of an exchange.
  enum Purpose {
    /// To send a request and receive its response.
    case request
    /// To open a connection to one endpoint. The exchange ends at the gate. When its deadline passes, the
    /// endpoint counts as failed, unless the probe still waits for its turn to begin TLS (`Handshakes`).
    case probe
    /// To open a connection along a whole plan. The exchange ends at the gate. Its deadline is the caller's
    /// time limit. When it passes, no endpoint counts as failed.
    case warmUp

    /// Whether the exchange only opens a connection and sends no request.
    var endsAtGate: Bool { self != .request }
  }

  let request: NetOptRequest
  let plan: RoutePlan
  let context: CallContext
  /// The number of unread body bytes at which the transfer is paused.
  let bodyBuffer: Int
  /// Carries the request's body if it is a stream; otherwise `nil`.
  let upload: UploadStream?
  let purpose: Purpose
  private let loop: EventLoop
  /// Has the multi handle that takes new work. `run` reads it when the exchange arrives on the loop.
  private let generations: NetworkGenerations
  /// Set when the caller cancels, on any thread. `cancel` also submits work that makes the loop act on it.
  private let cancelled = Atomic(false)
  /// Orders the write of the answer before the caller's reads. The Swift runtime orders them too, but the
  /// thread sanitizer does not see that when the answer comes before the caller's task is suspended.
  private let isAnswered = Atomic(false)

  // Confined to the loop. Unchecked exclusivity: see CurlMulti.
  /// The multi handle that runs the exchange; `nil` before the exchange arrives on the loop.
  private var multi: CurlMulti?
  /// The suspended task of the caller, until it is resumed.
  private var caller: UnsafeContinuation<Void, Never>?
  /// Decides when each leg starts, and which leg may send the request.
  @exclusivity(unchecked) var race: Race
  /// The timer of the race; made when the race first waits for a moment.
  var raceTimer: RaceTimer?
  /// The transfers of the legs that have started and not ended.
  @exclusivity(unchecked) var transfers: [Transfer] = []
  /// The reports of the started legs, in the order of their starts.
  @exclusivity(unchecked) var reports: [RouteReport.Leg] = []
  var lookUp = LookUp()
  /// The task that reads the caller's body stream (`UploadStream.pump`).
  var pump: Task<Void, Never>?
  /// Whether `reports` are copies of another call's reports, because this exchange waited for that call's
  /// race and the race failed.
  var sharesReports = false
  /// How often the gate let a leg send the request, resends included. The leg may have written no byte of it.
  var sends = 0
  /// How often the request came back unprocessed from the leg that sent it last.
  var replayCounts = ReplayCounts()
  /// Whether the gate has refused a connection of this exchange, for a reason that let the leg continue on
  /// another connection (`GateRefusal.mayReconnect`).
  var wasGivenUselessConnection = false
  @exclusivity(unchecked) var state = ExchangeState.queued
  /// Whether the caller has released the body, whose rest is received for the sake of the connection
  /// (`CurlMulti.release`).
  var isReleased = false
  /// The index in `CurlMulti.underWay`; -1 when the exchange is not there.
  var underWayIndex = -1
  /// The group whose connections the exchange may share. `nil` for a fresh connection, a probe or a warm-up,
  /// and when the exchange is not on a multi handle.
  private(set) var group: ConnectionGroup?

  /// The result that the caller gets.
  enum Answer {
    /// For a request.
    case response(NetOptResponse)
    /// For a probe or a warm-up.
    case connection(ConnectReport)
    case failure(NetOptError)
  }

  /// The result, from `prepare` until the caller takes it.
  private var answer: Answer?

  /// The DNS lookup of the race. A race has at most one.
  struct LookUp {
    /// The running lookup; `nil` when none runs.
    var running: (leg: Int, started: MonotonicInstant, task: Task<Void, Never>)?
    /// How long the lookup took; zero without a lookup that has ended.
    var time = Duration.zero
    /// The error of a failed lookup.
    var error: NetOptError?
  }

  init(
    _ purpose: Purpose, _ request: NetOptRequest, along plan: RoutePlan, in context: CallContext,
    on generations: NetworkGenerations,
    loop: EventLoop, bodyBuffer: Int
  ) {
    self.purpose = purpose
    self.request = request
    self.plan = plan
    self.context = context
    self.generations = generations
    self.loop = loop
    self.bodyBuffer = bodyBuffer
    race = Race(plan, mayBeRepeated: request.mayBeRepeated)
    if case .stream(let length, let isRepeatable, let iterator) = request.body.source {
      upload = UploadStream(length: length, isRepeatable: isRepeatable, iterator)
    } else {
      upload = nil
    }
  }

  // MARK: From any thread

  /// Submits the exchange to the loop and returns when its answer is ready.
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

  /// Returns the response or throws the error, after `perform` has returned. Not inlined: otherwise every
  /// waiting call would keep memory for the local variables of this method.
  @inline(never)
  func takeResponse() throws(NetOptError) -> NetOptResponse {
    // `take` clears the property: a response with a streamed body refers back to this exchange.
    switch answer.take() {
    case .response(let response): return response
    case .failure(let error): throw error
    case .connection, nil: preconditionFailure("a request was answered with a connection, or not at all")
    }
  }

  /// Returns the report on a probe's connection or throws the leg's failure, after `perform` has returned.
  /// Not inlined, for the same reason as `takeResponse`.
  @inline(never)
  func takeConnection() throws(LegError) -> ConnectReport {
    switch answer.take() {
    case .connection(let report): return report
    case .failure(let error):
      let failure = reports.last?.failure ?? LegFailure(.other, error.message)
      throw LegError(failure, isInconclusive: error.code == .cancelled || error.code == .shutDown)
    case .response, nil: preconditionFailure("a connection was answered with a response, or not at all")
    }
  }

  /// Returns the route of a warm-up or throws the error, after `perform` has returned.
  func takeRoute() throws(NetOptError) -> RouteReport {
    switch answer.take() {
    case .connection: return route
    case .failure(let error): throw error
    case .response, nil: preconditionFailure("a connection was answered with a response, or not at all")
    }
  }

  /// Stores the result for the caller. `resume` delivers it. Does nothing if a result is stored already, or
  /// the caller was resumed before.
  ///
  /// The two steps are separate so that the loop holds no reference to the response when the caller resumes.
  /// The last owner of a response tells the observers when the response is dropped, and that owner must be
  /// the caller.
  func prepare(_ answer: consuming Answer) {
    if caller != nil, self.answer == nil { self.answer = answer }
  }

  /// Resumes the caller. Does nothing if the caller was resumed before.
  func resume() {
    guard let caller = caller.take() else { return }
    isAnswered.store(true, ordering: .releasing)
    caller.resume()
  }

  /// Stores the result and resumes the caller. Does nothing if the caller was resumed before.
  func answer(_ answer: consuming Answer) {
    prepare(answer)
    resume()
  }

  /// Cancels the exchange, whatever its state.
  func cancel() {
    cancelled.store(true, ordering: .relaxed)
    submit { multi, exchange in multi.cancel(exchange) }
  }

  /// Ends the exchange, whose caller has released the body of the response.
  ///
  /// - Parameter unread: the number of bytes that had arrived and were not read.
  func release(unread: Int) { submit { multi, exchange in multi.release(exchange, unread: unread) } }

  /// Makes a paused transfer receive again.
  func resumeReceiving() {
    submit { multi, exchange in multi.unpause(exchange, receive: true, send: false) }
  }

  /// Makes a transfer that waits for more of the request's body ask for more again.
  func resumeSending() {
    submit { multi, exchange in multi.unpause(exchange, receive: false, send: true) }
  }

  /// Runs a closure on the loop with the exchange's multi handle. A loop that has stopped does not run the
  /// closure, but the exchange has ended before the loop stops.
  func submit(_ body: @escaping @Sendable (isolated CurlMulti, Exchange) -> Void) {
    _ = loop.submit(ExchangeWork(self, body))
  }

  // MARK: On the loop

  /// Whether the caller has cancelled. The multi handle may not have ended the exchange yet.
  var isCancelled: Bool { cancelled.load(ordering: .relaxed) }

  func now() -> MonotonicInstant { loop.now() }

  /// Whether a connection of the exchange verifies a certificate: the server's, or that of a proxy over TLS.
  var verifies: Bool {
    request.options.verification == .full
      && (plan.isSecure || plan.proxy.map(ProxyURL.isSecure) == true)
  }

  /// Starts the exchange on the current multi handle. The loop calls this when the exchange arrives, and
  /// again when the body stream was read to its end. `NetworkGenerations` calls it when the network has
  /// changed.
  func run() {
    guard !state.isFinished else { return }
    if purpose == .request, let upload, upload.endsFirst { return read(upload) }
    if case .readingBody = state { self.multi?.onLoop(self) { $0.remove($1) } }
    state.queueAgain()
    let multi = generations.current
    self.multi = multi
    multi.onLoop(self) { multi, exchange in
      if let failure = exchange.upload?.failure { return multi.fail(exchange, failure) }
      multi.admit(exchange)
    }
  }

  /// Reads a body stream to its end before the request is sent, and then submits the exchange to the loop
  /// again. Meanwhile the exchange counts as under way, so that its deadline, its caller and a shutdown can
  /// end it.
  private func read(_ upload: UploadStream) {
    let multi = generations.current
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

  /// Fails the exchange, because its deadline has passed.
  override func fire() {
    multi?.onLoop(self) { multi, exchange in
      guard case .readingBody = exchange.state else { return multi.deadlinePassed(exchange) }
      multi.fail(
        exchange,
        NetOptError(
          .timeout, phase: .send,
          "the body's stream, announced with 0 bytes, was still open at the call's deadline"))
    }
  }

  /// Runs work on the exchange's multi handle. Does nothing if the exchange has not arrived on a multi
  /// handle.
  fileprivate func perform(_ work: ExchangeWork) { multi?.onLoop(work) { $1.body($0, $1.exchange) } }

  /// Whether the gate would let a leg send the request, for the first time or again.
  func maySend(_ leg: Int) -> Bool { !purpose.endsAtGate && race.maySend(leg) }

  /// Decides at the gate whether a leg may send the request.
  func gate(_ leg: Int) -> Race.Verdict {
    // A probe or a warm-up only opens a connection, and sends no request.
    if purpose.endsAtGate { return .release }
    return race.ready(leg)
  }

  /// Copies more of the request's body to libcurl's buffer.
  ///
  /// - Parameter offset: the number of body bytes that libcurl has already taken. A body stream knows its own
  ///   position.
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

  /// Joins the group whose connections the exchange may share.
  func join(_ group: ConnectionGroup) {
    group.users += 1
    self.group = group
  }

  /// Leaves the group, if the exchange has joined one.
  func leave() {
    group?.users -= 1
    group = nil
  }

  /// Ends the exchange's race in its group, and releases the exchanges that wait for this race.
  ///
  /// - Returns: the released exchanges; none when no exchange waits for this race.
  func leaveRace() -> [Exchange] { group?.release(self) ?? [] }

  /// Removes a transfer that is being ended.
  func remove(_ transfer: Transfer) {
    // Nearly always the exchange has exactly one transfer.
    if transfers.count == 1, transfers[0] === transfer {
      transfers.removeLast()
    } else {
      transfers.removeAll { $0 === transfer }
    }
  }

  /// The transfer of the leg that won; `nil` when no leg has won or its transfer has ended.
  var winner: Transfer? {
    guard let leg = race.winner else { return nil }
    // By index, because an iterator would retain the array.
    for index in transfers.indices where transfers[index].leg == leg { return transfers[index] }
    return nil
  }

  /// How often the gate let the request be sent so far, and whether the request can be sent again.
  var sending: RequestLoss.Sending {
    RequestLoss.Sending(
      mayBeRepeated: request.mayBeRepeated, hasStream: upload?.canRewind == false, count: sends)
  }

  /// The route so far.
  var route: RouteReport {
    var route = RouteReport(plan: plan, legs: reports)
    route.isShared = sharesReports
    return route
  }

  /// Changes the latest report of a leg. Does nothing if the leg has none.
  func setReport(of leg: Int, _ change: (inout RouteReport.Leg) -> Void) {
    guard let index = reports.lastIndex(where: { $0.index == leg }) else { return }
    change(&reports[index])
  }
}

/// A closure that the loop runs for an exchange.
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

/// Fires when a race must act: the stagger time of the front leg is over, or the DNS lookup is due.
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
    multi.onLoop(exchange) { $0.legTimerFired($1) }
  }
}
