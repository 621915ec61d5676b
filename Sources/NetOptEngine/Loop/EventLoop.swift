import CEventLoop
import Glibc
package import NetOptCore
import NetOptLocking
import Synchronization

/// Work to run on the loop's thread, passed as an object instead of a closure.
package protocol LoopWork: AnyObject, Sendable {
  func run()
}

/// A handler that acts at the end of a turn on what callbacks recorded during the turn.
package protocol TurnHandler: AnyObject {
  /// Called once for each `atEndOfTurn`.
  func turnEnds()
}

/// One thread with epoll and timers. The loop is a serial executor: actors that use C libraries run on it, so
/// that the compiler checks that no other code touches those libraries.
///
/// Any thread may call `submit`, `enqueue` and `stop`. All other functions are for the loop's own thread and
/// trap on another thread. A turn has these steps: wait, report readiness, fire timers, run submitted work,
/// end of turn. The loop repeats the last two steps while they submit more work, for at most `mostRounds`
/// rounds. So a task on the loop that receives an answer can start its next operation without another wait.
public final class EventLoop: SerialExecutor, @unchecked Sendable {
  // Unchecked: only the loop's thread touches `state`, from the start of the thread to its end (`confined`
  // checks this). The other properties are constant, atomic or behind a lock.

  /// What the loop runs: submitted work, an actor's job, or a task's job with its executor.
  private enum Item {
    case work(any LoopWork)
    case serialJob(UnownedJob)
    case taskJob(UnownedJob, UnownedTaskExecutor)
  }

  /// The work that other threads have submitted, and the flags that they share with the loop.
  private struct Inbox {
    var items: [Item] = []
    /// Whether the loop sleeps or is about to sleep. The thread that submits work must then wake it.
    var isSleeping = false
    /// Whether `stop` was called.
    var isStopping = false
    /// Whether the loop refuses further work from other threads, because its thread is ending.
    var isClosed = false
  }

  private struct State: ~Copyable {
    var poller: Poller
    var timers = TimerQueue()
    /// The lower limit of the due times of new timers: 1 ns after the moment of the last `fireTimers`.
    var earliest = MonotonicInstant(nanoseconds: 0)
    var turnHandlers: [any TurnHandler] = []
    /// The work that the loop's own thread has submitted. It needs neither the lock nor another turn.
    var ownItems: [Item] = []
    /// Whether the loop refuses further work from its own thread, because the thread is ending.
    var isOver = false
    // The loop swaps an array with its spare before iterating over it, so that no turn allocates.
    var spareTurnHandlers: [any TurnHandler] = []
    var spareItems: [Item] = []
  }

  /// The most rounds in which a turn runs the work that it submitted itself. After them the loop polls the
  /// descriptors again.
  private static let mostRounds = 16

  private let inbox = Locked(Inbox())
  /// The number of threads that have decided to write to `wakeUp` and have not written yet.
  private let signallers = Atomic<Int>(0)
  /// The eventfd that ends a wait of the poller (eventfd(2)).
  private let wakeUp: Int32
  /// Unchecked exclusivity: each access ends before the loop calls any other code (docs/adr/0009).
  @exclusivity(unchecked) private var state: State
  private let timeSource = SystemTimeSource()
  /// The `pthread_self` of the loop's thread. Zero before and after the thread runs.
  private let thread = Atomic<UInt>(0)
  /// The thread's handle until a caller joins or detaches the thread.
  private let joinable = Locked<pthread_t?>(nil)

  /// Starts the thread.
  ///
  /// - Throws: `libraryFailed` when the system gives no descriptor or thread.
  package init(name: String = "netopt-loop") throws(NetOptError) {
    let wakeUp = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
    guard wakeUp >= 0 else { throw systemError("eventfd", errno) }
    self.wakeUp = wakeUp
    do throws(NetOptError) {
      state = State(poller: try Poller(wakeUp: wakeUp))
    } catch {
      close(wakeUp)
      throw error
    }
    var handle = pthread_t()
    let start = Unmanaged.passRetained(Start(loop: self, name: name))
    let code = pthread_create(
      &handle, nil,
      { argument in
        guard let argument else { return nil }
        let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
        netopt_set_thread_name(start.name)
        blockBrokenPipeSignal()
        start.loop.run()
        return nil
      }, start.toOpaque())
    guard code == 0 else {
      start.release()
      close(wakeUp)
      throw systemError("pthread_create", code)
    }
    joinable.withLock { $0 = handle }
  }

  deinit {
    // The thread holds a reference while it runs. So either the thread has ended, or it runs this `deinit` as
    // its last action.
    guard let handle = joinable.withLock({ $0.take() }) else { return }
    if pthread_equal(handle, pthread_self()) != 0 {
      pthread_detach(handle)
    } else {
      pthread_join(handle, nil)
    }
  }

  /// The argument of the new thread.
  private final class Start {
    let loop: EventLoop
    let name: String
    init(loop: EventLoop, name: String) {
      self.loop = loop
      self.name = name
    }
  }

  // MARK: From any thread

  /// Whether the caller is on the loop's thread.
  public var isCurrent: Bool { thread.load(ordering: .relaxed) == UInt(pthread_self()) }

  /// Submits work to run on the loop's thread. Work from one thread runs in the order of its submission.
  ///
  /// - Returns: false when the loop has stopped; the loop does not run the work then.
  package func submit(_ work: any LoopWork) -> Bool { append(.work(work)) }

  /// Runs an actor's job on the loop's thread.
  public func enqueue(_ job: consuming ExecutorJob) {
    // Only a bug lets an actor outlive its loop: callers call `stop` after everything on the loop has ended.
    let accepted = append(.serialJob(UnownedJob(job)))
    precondition(accepted, "a job for an event loop that has stopped")
  }

  /// Whether the caller is on the loop's thread.
  public func isIsolatingCurrentContext() -> Bool? { isCurrent }

  /// Traps when the caller is not on the loop's thread.
  public func checkIsolated() { precondition(isCurrent, "not on the event loop's thread") }

  /// Runs a task's job on the loop's thread. Returns false when the loop has stopped.
  func enqueue(_ job: UnownedJob, of executor: LoopTaskExecutor) -> Bool {
    append(.taskJob(job, executor.asUnownedTaskExecutor()))
  }

  private func append(_ item: Item) -> Bool {
    if isCurrent {
      if state.isOver { return false }
      state.ownItems.append(item)
      return true
    }
    let (accepted, mustSignal) = inbox.withLock { inbox in
      if inbox.isClosed { return (false, false) }
      inbox.items.append(item)
      return (true, endsSleep(&inbox))
    }
    if mustSignal { signal() }
    return accepted
  }

  /// Marks a sleeping loop as awake. The caller holds the lock and has changed the inbox. Returns whether the
  /// caller must call `signal` after it releases the lock.
  private func endsSleep(_ inbox: inout Inbox) -> Bool {
    guard inbox.isSleeping else { return false }
    inbox.isSleeping = false
    signallers.add(1, ordering: .relaxed)
    return true
  }

  /// Ends the wait of the poller.
  private func signal() {
    var one: UInt64 = 1
    // EAGAIN means that the counter is full: another write is already waking the loop.
    _ = write(wakeUp, &one, 8)
    signallers.subtract(1, ordering: .releasing)
  }

  /// Ends the thread after it has run everything submitted. The loop then drops the descriptors that it still
  /// watches and the timers that are still scheduled.
  ///
  /// Blocks the caller until the thread has ended, also when another caller stopped the loop first. On the
  /// loop's own thread it returns at once, and the thread ends later.
  package func stop() {
    let mustSignal = inbox.withLock { inbox in
      inbox.isStopping = true
      return endsSleep(&inbox)
    }
    if mustSignal { signal() }
    if isCurrent { return }
    // Joining under the lock makes every caller of `stop` wait for the end of the thread.
    joinable.withLock { handle in
      if let handle = handle.take() { pthread_join(handle, nil) }
    }
  }

  // MARK: On the loop's thread

  /// Watches a descriptor, or changes the readiness that the loop watches for.
  package func watch(_ descriptor: Int32, for interest: Readiness, _ handler: any ReadinessHandler) {
    confined()
    // Releasing the old handler may call the loop, so the handler must outlive the access to `state`.
    let old = state.poller.watch(descriptor, for: interest, handler)
    withExtendedLifetime(old) {}
  }

  /// Stops watching a descriptor for a handler. The descriptor may already be closed, and its number may
  /// belong to another handler.
  package func unwatch(_ descriptor: Int32, of handler: any ReadinessHandler) {
    confined()
    let old = state.poller.unwatch(descriptor, of: handler)
    withExtendedLifetime(old) {}
  }

  /// Schedules a timer, or moves it to another time. A due timer that a firing timer schedules fires in the
  /// next turn, so that timers alone cannot occupy the loop.
  package func schedule(_ timer: LoopTimer, at due: MonotonicInstant) {
    confined()
    state.timers.insert(timer, due: max(due, state.earliest))
  }

  /// When a timer is due; `nil` if it is not scheduled.
  package func due(of timer: LoopTimer) -> MonotonicInstant? {
    confined()
    return state.timers.due(of: timer)
  }

  /// Cancels a timer.
  package func cancel(_ timer: LoopTimer) {
    confined()
    state.timers.remove(timer)
  }

  /// Calls the handler's `turnEnds` once at the end of this turn. A call from inside `turnEnds` makes the
  /// loop call `turnEnds` again in the same turn.
  package func atEndOfTurn(_ handler: any TurnHandler) {
    confined()
    state.turnHandlers.append(handler)
  }

  /// The current time.
  package func now() -> MonotonicInstant { timeSource.now() }

  private func confined() { precondition(isCurrent, "not on the event loop's thread") }

  private func run() {
    thread.store(UInt(pthread_self()), ordering: .relaxed)
    while let timeout = nextWait() {
      let count = state.poller.wait(timeout)
      var index = 0
      repeat {
        index = handleEvents(from: index, of: count)
        fireTimers()
        takeInbox()
        endTurn()
        for _ in 0..<Self.mostRounds where !state.ownItems.isEmpty {
          runItems()
          endTurn()
        }
      } while index < count
    }
    releaseResources()
    // Cleared last: the objects that `releaseResources` releases may still call the loop.
    thread.store(0, ordering: .relaxed)
  }

  /// The time after which a turn stops handling events and first fires timers and runs submitted work. It
  /// then handles the remaining events, so that no event waits forever.
  package static let longestTurn = Duration.milliseconds(20)

  /// Handles events of the poller until all are handled or `longestTurn` has passed.
  ///
  /// - Returns: the index after the last event that was handled.
  private func handleEvents(from first: Int, of count: Int) -> Int {
    var index = first
    var end: MonotonicInstant?
    while index < count {
      // A handler may watch and unwatch descriptors, so the loop resolves each event only when it handles
      // that event.
      if let (handler, descriptor, readiness) = state.poller.event(index) {
        handler.ready(descriptor, for: readiness)
      }
      index += 1
      // A turn with a single event, which is the usual case, does not read the clock.
      guard index < count else { break }
      let now = now()
      if let end, now >= end { break }
      end = end ?? now + Self.longestTurn
    }
    return index
  }

  /// The timeout of the next wait in milliseconds: the time until the next timer is due, -1 without a timer,
  /// 0 while work is waiting. `nil` when the loop must end.
  ///
  /// When the loop may sleep, this sets `isSleeping`: a thread that submits work must then wake the loop.
  private func nextWait() -> Int32? {
    enum Next { case sleep, poll, end }
    if !state.ownItems.isEmpty { return 0 }
    let next = inbox.withLock { inbox -> Next in
      if !inbox.items.isEmpty { return .poll }
      inbox.isSleeping = !inbox.isStopping
      inbox.isClosed = inbox.isStopping
      return inbox.isStopping ? .end : .sleep
    }
    switch next {
    case .end: return nil
    case .poll: return 0
    case .sleep:
      guard let due = state.timers.nextDue else { return -1 }
      let rest = due.nanoseconds - now().nanoseconds
      // Rounded up: a wait that ends too early would only be repeated.
      return rest <= 0 ? 0 : Int32((min(rest, 3_600_000_000_000) + 999_999) / 1_000_000)
    }
  }

  private func fireTimers() {
    guard !state.timers.isEmpty else { return }
    let moment = now()
    state.earliest = moment + .nanoseconds(1)
    while let timer = state.timers.popDue(at: moment) { timer.fire() }
  }

  /// Runs the work that other threads have submitted until now. Work that it submits in turn waits for the
  /// next round.
  private func takeInbox() {
    var items: [Item] = []
    swap(&items, &state.spareItems)
    inbox.withLock { inbox in
      swap(&inbox.items, &items)
      inbox.isSleeping = false
    }
    run(&items)
    swap(&items, &state.spareItems)
  }

  /// Runs the work that the loop's thread has submitted until now.
  private func runItems() {
    // The array leaves `state` during the iteration, because the items may submit more.
    var items: [Item] = []
    swap(&items, &state.spareItems)
    swap(&items, &state.ownItems)
    run(&items)
    swap(&items, &state.spareItems)
  }

  private func run(_ items: inout [Item]) {
    if items.isEmpty { return }
    for item in items {
      switch item {
      case .work(let work): work.run()
      case .serialJob(let job): job.runSynchronously(on: asUnownedSerialExecutor())
      case .taskJob(let job, let executor): job.runSynchronously(on: executor)
      }
    }
    items.removeAll(keepingCapacity: true)
  }

  private func endTurn() {
    while !state.turnHandlers.isEmpty {
      var handlers: [any TurnHandler] = []
      swap(&handlers, &state.spareTurnHandlers)
      swap(&handlers, &state.turnHandlers)
      for handler in handlers { handler.turnEnds() }
      handlers.removeAll(keepingCapacity: true)
      swap(&handlers, &state.spareTurnHandlers)
    }
  }

  /// Releases all resources when the thread ends: other code may still hold a reference to the loop, so
  /// `deinit` may come much later. The inbox is closed by then.
  private func releaseResources() {
    state.isOver = true
    // Waits for the threads that are about to write to `wakeUp`: the system soon reuses the number of a
    // closed descriptor.
    while signallers.load(ordering: .acquiring) > 0 { sched_yield() }
    let handlers = state.poller.close()
    let timers = state.timers.removeAll()
    close(wakeUp)
    withExtendedLifetime((handlers, timers)) {}
  }
}
