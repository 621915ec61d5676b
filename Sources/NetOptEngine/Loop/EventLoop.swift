import CEventLoop
import Glibc
package import NetOptCore
import NetOptLocking
import Synchronization

/// Something to be done on the loop's thread, handed over without a closure.
package protocol LoopWork: AnyObject, Sendable {
  func run()
}

/// Who acts at the end of a turn on what callbacks recorded during it.
package protocol TurnHandler: AnyObject {
  func turnEnds()
}

/// One thread with epoll and timers. It is a serial executor: actors that touch C libraries live on it, so that the
/// compiler checks that nothing else does.
///
/// Only `submit`, `enqueue` and `stop` may be called from any thread; everything else is for the loop's own thread
/// and traps elsewhere. A turn is: wait, hand out readiness, fire timers, run what was submitted, end of turn; and the
/// last two again while they submit more, for some rounds: a task on the loop that gets its answer asks its next
/// question without another wait.
public final class EventLoop: SerialExecutor, @unchecked Sendable {
  // Unchecked: `state` is touched by the loop's thread alone (checked by `confined`), from its start to its end;
  // the rest is constant, atomic or behind a lock.

  private enum Item {
    case work(any LoopWork)
    case serialJob(UnownedJob)
    case taskJob(UnownedJob, UnownedTaskExecutor)
  }

  private struct Inbox {
    var items: [Item] = []
    var isSleeping = false
    var isStopping = false
    var isClosed = false
  }

  private struct State: ~Copyable {
    var poller: Poller
    var timers = TimerQueue()
    /// Timers that are scheduled now fire at this moment at the earliest.
    var earliest = MonotonicInstant(nanoseconds: 0)
    var turnHandlers: [any TurnHandler] = []
    /// What the loop's own thread has submitted: it needs neither the lock nor a turn of its own.
    var ownItems: [Item] = []
    var isOver = false
    // Arrays that are walked are swapped with these, so that no turn allocates.
    var spareTurnHandlers: [any TurnHandler] = []
    var spareItems: [Item] = []
  }

  /// How often a turn runs what it has submitted itself before it looks at the descriptors again.
  private static let mostRounds = 16

  private let inbox = Locked(Inbox())
  /// How many threads have decided to write to `wakeUp` and have not done so yet.
  private let signallers = Atomic<Int>(0)
  private let wakeUp: Int32
  /// Unchecked exclusivity: each access is over before anything else is called (docs/adr/0009).
  @exclusivity(unchecked) private var state: State
  private let timeSource = SystemTimeSource()
  /// The loop's `pthread_self`, zero before and after it runs.
  private let thread = Atomic<UInt>(0)
  /// The thread until somebody has joined it.
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
    // The thread holds a reference while it runs: it has ended, or letting go of this is the last thing it does.
    guard let handle = joinable.withLock({ $0.take() }) else { return }
    if pthread_equal(handle, pthread_self()) != 0 {
      pthread_detach(handle)
    } else {
      pthread_join(handle, nil)
    }
  }

  /// What the thread is started with.
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

  /// Has something run on the loop's thread, after what the caller's thread submitted before.
  ///
  /// - Returns: false when the loop has stopped; then it will not run.
  package func submit(_ work: any LoopWork) -> Bool { append(.work(work)) }

  /// Has an actor's job run on the loop's thread.
  public func enqueue(_ job: consuming ExecutorJob) {
    // An actor outlives its loop only by mistake: `stop` comes after everything on it has ended.
    let accepted = append(.serialJob(UnownedJob(job)))
    precondition(accepted, "a job for an event loop that has stopped")
  }

  /// Whether the caller is on the loop's thread.
  public func isIsolatingCurrentContext() -> Bool? { isCurrent }

  /// Traps when the caller is not on the loop's thread.
  public func checkIsolated() { precondition(isCurrent, "not on the event loop's thread") }

  /// Has a task's job run. Returns false when the loop has stopped.
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

  /// Whether the caller, who holds the lock and has changed the inbox, must `signal` once it has let go of the lock.
  private func endsSleep(_ inbox: inout Inbox) -> Bool {
    guard inbox.isSleeping else { return false }
    inbox.isSleeping = false
    signallers.add(1, ordering: .relaxed)
    return true
  }

  private func signal() {
    var one: UInt64 = 1
    // EAGAIN means that the counter is full, so the loop is being woken already.
    _ = write(wakeUp, &one, 8)
    signallers.subtract(1, ordering: .releasing)
  }

  /// Ends the thread once everything submitted has run, and waits for its end, whoever has asked for it. Descriptors
  /// that are still watched and timers that are still scheduled are forgotten.
  ///
  /// It blocks the caller. From the loop's own thread it returns at once, and the thread ends by itself.
  package func stop() {
    let mustSignal = inbox.withLock { inbox in
      inbox.isStopping = true
      return endsSleep(&inbox)
    }
    if mustSignal { signal() }
    if isCurrent { return }
    // Joining under the lock has all who call this wait for the end.
    joinable.withLock { handle in
      if let handle = handle.take() { pthread_join(handle, nil) }
    }
  }

  // MARK: On the loop's thread

  /// Watches a descriptor, or changes what it is watched for.
  package func watch(_ descriptor: Int32, for interest: Readiness, _ handler: any ReadinessHandler) {
    confined()
    // What is let go of here may call the loop, so it outlives the access to the state.
    let old = state.poller.watch(descriptor, for: interest, handler)
    withExtendedLifetime(old) {}
  }

  /// Ends watching for a handler. The descriptor may have been closed before, and its number be another handler's.
  package func unwatch(_ descriptor: Int32, of handler: any ReadinessHandler) {
    confined()
    let old = state.poller.unwatch(descriptor, of: handler)
    withExtendedLifetime(old) {}
  }

  /// Schedules a timer, or moves it. One that is due fires in the next turn when this is called by a timer that
  /// fires, so that timers alone cannot keep the loop.
  package func schedule(_ timer: LoopTimer, at due: MonotonicInstant) {
    confined()
    state.timers.insert(timer, due: max(due, state.earliest))
  }

  /// Keeps a timer from firing.
  package func cancel(_ timer: LoopTimer) {
    confined()
    state.timers.remove(timer)
  }

  /// Has `turnEnds` called once at the end of this turn. Asking for it from there means another round.
  package func atEndOfTurn(_ handler: any TurnHandler) {
    confined()
    state.turnHandlers.append(handler)
  }

  /// The present moment.
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
    giveBack()
    // Last, so that what was let go of could still call the loop.
    thread.store(0, ordering: .relaxed)
  }

  /// How long a turn handles events before timers and what was submitted have their turn again. The events that are left come next, so that none waits for
  /// ever.
  package static let longestTurn = Duration.milliseconds(20)

  /// Handles events of the poller until they are all handled, or that has taken long enough.
  ///
  /// - Returns: how many are handled.
  private func handleEvents(from first: Int, of count: Int) -> Int {
    var index = first
    var end: MonotonicInstant?
    while index < count {
      // Handlers may watch and unwatch: each event is looked up when its turn comes.
      if let (handler, descriptor, readiness) = state.poller.event(index) {
        handler.ready(descriptor, for: readiness)
      }
      index += 1
      // One event, as nearly always, costs no look at the clock.
      guard index < count else { break }
      let now = now()
      if let end, now >= end { break }
      end = end ?? now + Self.longestTurn
    }
    return index
  }

  /// Milliseconds until the next timer is due; none while something waits to be run; `nil` when the loop is to end.
  /// When it says that the loop may sleep, who submits something must wake it.
  private func nextWait() -> Int32? {
    enum Next { case sleep, goOn, end }
    if !state.ownItems.isEmpty { return 0 }
    let next = inbox.withLock { inbox -> Next in
      if !inbox.items.isEmpty { return .goOn }
      inbox.isSleeping = !inbox.isStopping
      inbox.isClosed = inbox.isStopping
      return inbox.isStopping ? .end : .sleep
    }
    switch next {
    case .end: return nil
    case .goOn: return 0
    case .sleep:
      guard let due = state.timers.nextDue else { return -1 }
      let rest = due.nanoseconds - now().nanoseconds
      // Rounded up: waking early would only mean to wait again.
      return rest <= 0 ? 0 : Int32((min(rest, 3_600_000_000_000) + 999_999) / 1_000_000)
    }
  }

  private func fireTimers() {
    guard !state.timers.isEmpty else { return }
    let moment = now()
    state.earliest = moment + .nanoseconds(1)
    while let timer = state.timers.popDue(at: moment) { timer.fire() }
  }

  /// Takes what other threads have submitted until now, and runs it; what that submits waits for the next round.
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

  /// Runs what the loop's thread has submitted until now.
  private func runItems() {
    // The array leaves the state while it is walked: what runs may submit.
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

  /// Leaves nothing behind when the thread ends, although others may hold the loop for longer. The inbox is closed.
  private func giveBack() {
    state.isOver = true
    // Who was about to write to the wake-up is waited for: the number of a closed descriptor is soon in use again.
    while signallers.load(ordering: .acquiring) > 0 { sched_yield() }
    let handlers = state.poller.close()
    let timers = state.timers.removeAll()
    close(wakeUp)
    withExtendedLifetime((handlers, timers)) {}
  }
}

/// A peer that has gone is an error of the write, not a signal that ends the process. OpenSSL writes without
/// MSG_NOSIGNAL, and a library may not change what the whole process does with a signal.
private func blockBrokenPipeSignal() {
  var signals = sigset_t()
  sigemptyset(&signals)
  sigaddset(&signals, SIGPIPE)
  pthread_sigmask(SIG_BLOCK, &signals, nil)
}
