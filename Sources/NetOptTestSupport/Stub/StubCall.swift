import NetOptCore

/// A call on a `StubTransport`. It runs the race of a plan, as the real transport does, with tasks in place
/// of sockets and timers. The tasks send events, and the call handles one event after another.
struct StubCall {
  /// The response or the error with which the call ends.
  typealias Outcome = Result<NetOptResponse, NetOptError>

  /// What a task reports to the call. An `Int` is the index of a leg in the race.
  private enum Event: Sendable {
    /// A moment until which the race asked the call to wait (`Race.Step.wait`) has come.
    case alarm
    /// The leg started to connect.
    case opened(Int)
    /// TCP is connected.
    case connected(Int)
    /// The connection can send a request. `reused`: whether it comes from the pool.
    case ready(Int, reused: Bool)
    /// The leg failed.
    case failed(Int, LegFailure)
    /// The DNS look-up of the leg ended.
    case resolved(Int, Result<ResolvedAddresses, NetOptError>)
    /// The exchange on the winning connection (`StubExchange`) ended with a response or an error.
    case answered(Result<StubResponse, NetOptError>)
    /// The deadline of the call has passed.
    case deadline
    /// The transport was shut down.
    case shutDown
  }

  /// Takes the events from the tasks. It stores the time of each event, because the call may handle the event
  /// later.
  private struct Events: Sendable {
    let stream: AsyncStream<(Event, MonotonicInstant)>.Continuation
    let clock: any TimeSource

    /// Sends an event to the call, with the current time.
    func note(_ event: Event) { stream.yield((event, clock.now())) }
  }

  /// What the call knows about a leg of the race.
  struct Leg {
    /// The duration of the DNS look-up that found the address; zero for an address of the list.
    var lookup = Duration.zero
    /// The report of the leg so far; `nil` before the leg starts, and for a DNS look-up that found addresses.
    var report: RouteReport.Leg?
    /// Whether the leg has ended: it won, lost, failed, or was a DNS look-up that found addresses.
    var isOver = false
  }

  let request: NetOptRequest
  let context: CallContext
  let plan: RoutePlan
  let transport: StubTransport
  /// Takes the events of the tasks of this call.
  private let events: Events
  /// The time of the event that the call handles, on the clock of the transport.
  var now: MonotonicInstant
  /// The race, which decides when a leg starts and which leg sends the request.
  var race: Race
  /// The legs, by their indices in the race.
  var legs: [Leg]
  /// The indices of the started legs, in starting order.
  var started: [Int] = []
  /// The error of the DNS look-up, if it failed.
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

  /// Performs a call from its first leg to the response head.
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
      // Without an outcome, the task was cancelled: only cancellation ends the stream.
      call.now = transport.timeSource.now()
      return outcome ?? .failure(call.error(.cancelled, call.phase, "the call was cancelled"))
    }
    return try outcome.get()
  }

  /// The time of the event that the call handles, counted from the start of the call.
  var offset: Duration { now - context.started }

  /// The phase of the call, for errors.
  private var phase: NetOptError.Phase { race.winner == nil ? .connect : .receive }

  /// Carries out a step of the race, and the steps that the race returns after it.
  ///
  /// - Returns: the outcome of the call if all legs have failed, otherwise `nil`.
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

  /// Handles an event.
  ///
  /// - Returns: the outcome of the call if the event ended it, otherwise `nil`.
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

  /// Starts a leg: its DNS look-up, or its connection.
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
        if !error.isInconclusive { events.note(.failed(index, error.failure)) }
      }
    }
  }

  /// Asks the race whether the ready leg may send the request, and starts the exchange if it may.
  private mutating func ready(_ leg: Int, _ reused: Bool, _ group: inout TaskGroup<Void>) {
    let time = offset
    if !reused, plan.origin.scheme == .https { legs[leg].report?.secured = time }
    legs[leg].report?.reused = reused
    guard race.ready(leg) == .send else {
      end(leg, .lost)
      return
    }
    end(leg, .won)
    context.attempt?.recordSend(to: race.legs[leg].address.map { IPEndpoint($0, port: plan.origin.port) })
    let exchange = StubExchange(
      request: request, destination: .init(race.legs[leg].target, of: plan), transport: transport)
    let events = events
    group.addTask {
      if let answer = await exchange.run() { events.note(.answered(answer)) }
    }
  }

  /// Handles the end of a DNS look-up. Adds a leg to the race for each address that the look-up found and
  /// that no leg has tried. Without such an address, the look-up counts as a failed leg.
  ///
  /// - Returns: the outcome of the call if all legs have failed, otherwise `nil`.
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
    // The legs to the found addresses take the place of the look-up in the report.
    legs[index].report = nil
    legs[index].isOver = true
    legs += new.map { _ in Leg(lookup: lookup) }
    return follow(race.expanded(index, into: new), &group)
  }

  /// Records how a leg ended.
  private mutating func end(
    _ leg: Int, _ outcome: RouteReport.Outcome, _ failure: LegFailure? = nil
  ) {
    let time = offset
    legs[leg].isOver = true
    legs[leg].report?.ended = time
    legs[leg].report?.outcome = outcome
    legs[leg].report?.failure = failure
  }

  /// Starts a task that sends an event at the given time.
  private func wake(with event: Event, at moment: MonotonicInstant, _ group: inout TaskGroup<Void>) {
    let (events, clock) = (events, transport.timeSource)
    group.addTask {
      do { try await clock.sleep(until: moment) } catch { return }
      events.note(event)
    }
  }
}
