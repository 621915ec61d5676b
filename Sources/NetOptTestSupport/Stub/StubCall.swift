import NetOptCore

/// A call on a `StubTransport`. It runs the race of a plan with tasks in place of sockets and timers. Tasks
/// send events, and the call handles the events one after another.
struct StubCall {
  typealias Outcome = Result<NetOptResponse, NetOptError>

  private enum Event: Sendable {
    case alarm
    case opened(Int)
    case connected(Int)
    case ready(Int, reused: Bool)
    case failed(Int, LegFailure)
    case resolved(Int, Result<ResolvedAddresses, NetOptError>)
    case answered(Result<StubResponse, NetOptError>)
    case deadline
    case shutDown
  }

  /// Receives the events. Each event has its time, because the call may handle the event later.
  private struct Events: Sendable {
    let stream: AsyncStream<(Event, MonotonicInstant)>.Continuation
    let clock: any TimeSource

    func note(_ event: Event) { stream.yield((event, clock.now())) }
  }

  struct Leg {
    /// The duration of the look-up that gave the address.
    var lookup = Duration.zero
    var report: RouteReport.Leg?
    var isOver = false
  }

  let request: NetOptRequest
  let context: CallContext
  let plan: RoutePlan
  let transport: StubTransport
  private let events: Events
  /// The time of the event that the call handles.
  var now: MonotonicInstant
  var race: Race
  /// The state of each leg, by its index in the race.
  var legs: [Leg]
  /// The indices of the started legs, in starting order.
  var started: [Int] = []
  var lookupError: NetOptError?

  private init(
    _ request: NetOptRequest, _ plan: RoutePlan, _ context: CallContext, _ transport: StubTransport,
    _ events: Events
  ) {
    self.request = request
    self.plan = plan
    self.context = context
    self.transport = transport
    self.events = events
    now = transport.timeSource.now()
    race = Race(plan, mayBeRepeated: request.mayBeRepeated)
    legs = plan.legs.map { _ in Leg() }
  }

  /// Performs a call.
  static func run(
    _ request: NetOptRequest, along plan: RoutePlan, in context: CallContext, on transport: StubTransport
  ) async throws(NetOptError) -> NetOptResponse {
    let (stream, continuation) = AsyncStream<(Event, MonotonicInstant)>.makeStream()
    let events = Events(stream: continuation, clock: transport.timeSource)
    let outcome = await withTaskGroup(of: Void.self) { group -> Outcome in
      defer { group.cancelAll() }
      var call = StubCall(request, plan, context, transport, events)
      group.addTask {
        if await transport.state.wait(until: { $0.isShutDown }) { events.note(.shutDown) }
      }
      if let deadline = context.deadline { call.wake(with: .deadline, at: deadline, &group) }
      var outcome = call.follow(call.race.advance(), &group)
      if outcome == nil {
        for await (event, moment) in stream {
          call.now = moment
          outcome = call.handle(event, &group)
          if outcome != nil { break }
        }
      }
      // Only the cancellation of the task ends the stream early.
      call.now = transport.timeSource.now()
      return outcome ?? .failure(call.error(.cancelled, call.phase, "the call was cancelled"))
    }
    return try outcome.get()
  }

  var offset: Duration { now - context.started }

  private var phase: NetOptError.Phase { race.winner == nil ? .connect : .receive }

  /// Carries out the steps of the race.
  ///
  /// - Returns: the outcome of the call if a step ended it, else `nil`.
  private mutating func follow(_ step: Race.Step, _ group: inout TaskGroup<Void>) -> Outcome? {
    var step = step
    while case .start(let leg) = step {
      start(leg, &group)
      step = race.advance()
    }
    switch step {
    case .start: return nil
    case .wait(let moment):
      if let moment { wake(with: .alarm, at: moment, &group) }
      return nil
    case .exhausted: return .failure(exhaustedError)
    }
  }

  private mutating func handle(_ event: Event, _ group: inout TaskGroup<Void>) -> Outcome? {
    switch event {
    case .alarm:
      let isConnected = race.front.map { legs[$0].report?.connected != nil } ?? false
      return follow(race.timeIsUp(at: transport.timeSource.now(), connected: isConnected), &group)
    case .opened(let leg):
      return follow(race.opened(leg, at: now), &group)
    case .connected(let leg):
      let time = offset
      if !legs[leg].isOver { legs[leg].report?.connected = time }
      return nil
    case .ready(let leg, let reused):
      ready(leg, reused, &group)
      return nil
    case .failed(let leg, let failure):
      guard !legs[leg].isOver else { return nil }
      end(leg, .failed, failure)
      return follow(race.failed(leg), &group)
    case .resolved(let leg, let result):
      return resolved(leg, result, &group)
    case .answered(.success(let response)):
      return .success(self.response(response))
    case .answered(.failure(let error)):
      return .failure(error.with(route: route))
    case .deadline:
      return .failure(
        error(
          .timeout, phase, "the call's time limit passed; raise it, or see the route for what took so long"))
    case .shutDown:
      return .failure(StubTransport.shutDownError(route))
    }
  }

  private mutating func start(_ index: Int, _ group: inout TaskGroup<Void>) {
    let leg = race.legs[index]
    legs[index].report = RouteReport.Leg(
      address: leg.address, source: leg.source, started: offset, ended: .zero, outcome: .cancelled)
    started.append(index)
    let (events, transport, origin) = (events, transport, plan.origin)
    if case .dns = leg.target {
      let isFresh = request.options.connection == .fresh
      group.addTask {
        let result: Result<ResolvedAddresses, NetOptError>
        do throws(NetOptError) {
          result = .success(try await transport.resolver.resolve(origin.host, fresh: isFresh))
        } catch { result = .failure(error) }
        events.note(.resolved(index, result))
      }
      return
    }
    let connection = connection(to: leg.target)
    let attempt = StubLeg(
      connection: connection, limit: request.options.connectTimeout,
      isKept: request.options.connection == .pooled)
    if attempt.isKept, transport.take(connection) {
      events.note(.ready(index, reused: true))
      return
    }
    events.note(.opened(index))
    group.addTask {
      do throws(LegError) {
        _ = try await attempt.open(on: transport) { events.note(.connected(index)) }
        events.note(.ready(index, reused: false))
      } catch {
        if !error.isCancellation { events.note(.failed(index, error.failure)) }
      }
    }
  }

  private mutating func ready(_ leg: Int, _ reused: Bool, _ group: inout TaskGroup<Void>) {
    let time = offset
    if !reused, plan.origin.scheme == .https { legs[leg].report?.secured = time }
    legs[leg].report?.reused = reused
    guard race.ready(leg) == .send else {
      end(leg, .lost)
      return
    }
    end(leg, .won)
    context.attempt?.isSent(to: race.legs[leg].address.map { IPEndpoint($0, port: plan.origin.port) })
    let exchange = StubExchange(
      request: request, destination: .init(race.legs[leg].target, of: plan), transport: transport)
    let events = events
    group.addTask {
      if let answer = await exchange.run() { events.note(.answered(answer)) }
    }
  }

  private mutating func resolved(
    _ index: Int, _ result: Result<ResolvedAddresses, NetOptError>, _ group: inout TaskGroup<Void>
  ) -> Outcome? {
    let addresses: [IPAddress]
    switch result {
    case .success(let answer): addresses = answer.addresses
    case .failure(let error):
      lookupError = error
      let kind: LegFailure.Kind = error.code == .nameNotFound ? .nameNotFound : .resolve
      return handle(.failed(index, LegFailure(kind, error.message)), &group)
    }
    let family = request.options.family
    let stagger = race.legs[index].stagger
    let answers = addresses.filter { family == nil || $0.family == family }
      .map { RoutePlan.Leg(.address($0), source: .dns, stagger: stagger) }
    let new = race.untried(plan.ordered(answers))
    if new.isEmpty {
      let message = "DNS has no address for \(plan.origin.host) that was not tried"
      return handle(.failed(index, LegFailure(.nameNotFound, message)), &group)
    }
    let lookup = offset - (legs[index].report?.started ?? .zero)
    // The report contains the legs with the addresses from the look-up, and not the look-up itself.
    legs[index].report = nil
    legs[index].isOver = true
    legs += new.map { _ in Leg(lookup: lookup) }
    return follow(race.expanded(index, into: new), &group)
  }

  private mutating func end(
    _ leg: Int, _ outcome: RouteReport.Outcome, _ failure: LegFailure? = nil
  ) {
    let time = offset
    legs[leg].isOver = true
    legs[leg].report?.ended = time
    legs[leg].report?.outcome = outcome
    legs[leg].report?.failure = failure
  }

  private func wake(with event: Event, at moment: MonotonicInstant, _ group: inout TaskGroup<Void>) {
    let (events, clock) = (events, transport.timeSource)
    group.addTask {
      do { try await clock.sleep(until: moment) } catch { return }
      events.note(event)
    }
  }
}
