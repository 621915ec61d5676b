import NetOptCore
import NetOptEventLoop
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
    case request(UnsafeContinuation<Result<HTTPResponse, NetOptError>, Never>)
    /// A connection; it ends at the gate.
    case connection(UnsafeContinuation<Result<ConnectReport, LegError>, Never>)
  }

  let request: HTTPRequest
  let plan: RoutePlan
  let context: CallContext
  let bodyBuffer: Int
  let upload: UploadStream?
  private let loop: EventLoop
  private let multi: CurlMulti
  private let cancelled = Atomic(false)
  /// Orders the answer before what the caller does with it. The runtime does that too, but when the answer comes before
  /// the caller's task is suspended it does so out of the thread sanitizer's sight.
  private let isAnswered = Atomic(false)

  // Of the loop. Unchecked exclusivity: see CurlMulti.
  @exclusivity(unchecked) var purpose: Purpose?
  @exclusivity(unchecked) var race: Race
  var raceTimer: RaceTimer?
  /// The legs that are connecting or carry the exchange.
  @exclusivity(unchecked) var transfers: [Transfer] = []
  /// The report of each leg that was started.
  @exclusivity(unchecked) var reports: [RouteReport.Leg] = []
  var lookUp: LookUp?
  var lookUpTime = Duration.zero
  var lastFailure: (failure: LegFailure, endpoint: Endpoint?)?
  var lookUpError: NetOptError?
  var body: BodyChannel?
  var pump: Task<Void, Never>?
  /// Whether the reports are those of the call whose race this one waited for.
  var sharesReports = false
  /// Whether the race is won.
  var isWon = false
  var isOver = false
  /// Its place among the exchanges under way.
  var position = -1
  /// The connections that it may share; none of them when it wants one of its own.
  private(set) var group: ConnectionGroup?

  /// A look-up that is under way, or was.
  struct LookUp {
    let leg: Int
    let started: MonotonicInstant
    let task: Task<Void, Never>
  }

  init(
    _ request: HTTPRequest, along plan: RoutePlan, in context: CallContext, on multi: CurlMulti,
    loop: EventLoop, bodyBuffer: Int
  ) {
    self.request = request
    self.plan = plan
    self.context = context
    self.multi = multi
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

  /// Hands the exchange to the loop.
  func begin(_ purpose: Purpose) {
    self.purpose = purpose
    if !loop.submit(self) { multi.refuse(self) }
  }

  /// Gives the caller its answer.
  func resume<Answer: Sendable>(_ continuation: UnsafeContinuation<Answer, Never>, returning answer: Answer) {
    isAnswered.store(true, ordering: .releasing)
    continuation.resume(returning: answer)
  }

  /// Takes note of the answer. To be called right after the continuation has given it.
  func acquireAnswer() { _ = isAnswered.load(ordering: .acquiring) }

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
    _ = loop.submit(ExchangeWork(self, multi, body))
  }

  // MARK: On the loop

  var isCancelled: Bool { cancelled.load(ordering: .relaxed) }

  func now() -> MonotonicInstant { loop.now() }

  func run() { multi.onLoop(self) { $0.admit($1) } }

  override func fire() { multi.onLoop(self) { $0.deadlinePassed($1) } }

  /// The gate: whether this leg may send the request.
  func gate(_ leg: Int) -> Race.Verdict {
    // Whoever asked for a connection has it now.
    if case .connection = purpose { return .lost }
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
  var winner: Transfer? { transfers.first { $0.leg == race.winner } }

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
  private let exchange: Exchange
  private let multi: CurlMulti
  private let body: @Sendable (isolated CurlMulti, Exchange) -> Void

  init(
    _ exchange: Exchange, _ multi: CurlMulti,
    _ body: @escaping @Sendable (isolated CurlMulti, Exchange) -> Void
  ) {
    self.exchange = exchange
    self.multi = multi
    self.body = body
  }

  func run() { multi.onLoop(self) { $1.body($0, $1.exchange) } }
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
