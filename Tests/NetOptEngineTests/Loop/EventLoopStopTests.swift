import Glibc
import NetOptCore
import NetOptEngine
import NetOptLocking
import NetOptTestSupport
import Synchronization
import Testing

/// The stop of an event loop, and the release of its resources.
@Suite(.timeLimit(.minutes(1))) struct EventLoopStopTests {
  @Test("stop runs all submitted work, and the loop refuses later work")
  func runsSubmittedWork() async throws {
    let loop = try EventLoop()
    let record = EventRecorder<Int>()
    for index in 0..<1000 { _ = loop.submit(ClosureWork { record.record(index) }) }
    loop.stop()
    #expect(record.events == Array(0..<1000))
    let accepted = loop.submit(ClosureWork { record.record(-1) })
    #expect(!accepted)
    #expect(record.events.count == 1000)
  }

  @Test("stop runs the work of the last end-of-turn handlers, and the work that this work submits")
  func runsLastWork() async throws {
    let loop = try EventLoop()
    let record = EventRecorder<String>()
    try await loop.perform {
      loop.stop()
      loop.atEndOfTurn(
        ClosureTurnHandler { _ in
          let accepted = loop.submit(ClosureWork { submitChain(of: 100, to: loop, record) })
          record.record("accepted: \(accepted)")
        })
    }
    loop.stop()
    #expect(record.events == ["accepted: true"] + (0...100).map { "\(100 - $0) to go" })
  }

  @Test func stopsFromItsOwnThread() async throws {
    let loop = try EventLoop(name: "own-stop")
    try await loop.perform { loop.stop() }
    try await wait(for: "the end of the thread") { !threadNames().contains("own-stop") }
    #expect(!loop.submit(ClosureWork {}))
    loop.stop()
  }

  @Test("a loop whose own thread holds the last reference ends that thread")
  func lastReference() async throws {
    try await stoppedByItself(name: "last-stop")
    try await wait(for: "the end of the thread") { !threadNames().contains("last-stop") }
  }

  /// Starts a loop that stops itself. Keeps no reference to the loop, so the last reference is that of the
  /// loop's own thread.
  private func stoppedByItself(name: String) async throws {
    let loop = try EventLoop(name: name)
    try await loop.perform { loop.stop() }
  }

  @Test("each of three concurrent calls of stop waits for the submitted work")
  func concurrentStops() async throws {
    let loop = try EventLoop()
    let record = EventRecorder<String>()
    let gate = Gate()
    _ = loop.submit(
      ClosureWork {
        gate.pass()
        record.record("run")
      })
    let sawItRun = await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<3 {
        group.addTask {
          loop.stop()
          return record.events == ["run"]
        }
      }
      gate.open()
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(sawItRun == [true, true, true])
  }

  /// When `submit` returns true, the loop runs the work, even when `stop` is called at the same time.
  @Test("the loop runs all work that it accepts during a concurrent stop")
  func acceptedWork() async throws {
    for _ in 0..<100 {
      let loop = try EventLoop()
      let (accepted, run) = (Counter(), Counter())
      await withTaskGroup { group in
        for _ in 0..<3 {
          group.addTask {
            while loop.submit(ClosureWork { run.add() }) {
              accepted.add()
              await Task.yield()
            }
          }
        }
        group.addTask {
          while run.value < 10 { await Task.yield() }
          loop.stop()
        }
      }
      #expect(run.value == accepted.value)
    }
  }

  @Test("stop releases handlers and timers")
  func releasesHandlersAndTimers() async throws {
    let loop = try EventLoop()
    let sockets = try SocketPair()
    let left = Locked<[WeakReference]>([])
    try await loop.perform {
      let handler = ClosureHandler { _, _ in }
      let timer = ClosureTimer { _ in }
      loop.watch(sockets.ours, for: .read, handler)
      loop.schedule(timer, at: loop.now() + .seconds(3600))
      left.withLock { $0 = [WeakReference(handler), WeakReference(timer)] }
    }
    #expect(left.withLock { $0.allSatisfy { $0.object != nil } })
    loop.stop()
    #expect(left.withLock { $0.allSatisfy { $0.object == nil } })
    #expect(!loop.submit(ClosureWork {}))
    sockets.close()
  }

  @Test("a stopped loop without references is released")
  func releasesLoop() async throws {
    weak var released: EventLoop?
    do {
      let loop = try EventLoop()
      released = loop
      try await loop.perform {}
      loop.stop()
    }
    #expect(released == nil)
  }

  @Test("a stopped loop has no descriptor and no thread, even while it is referenced")
  func releasesDescriptorsAndThread() async throws {
    await #expect(processExitsWith: .success) {
      // Swift's tasks run on libdispatch, which opens descriptors of the counted kinds for its first timer.
      // The sleep in this wait is such a timer. libdispatch opens the timerfd last.
      try await wait(for: "libdispatch's descriptors") { descriptors(of: ["timerfd"]) > 0 }
      let before = descriptors(of: ["eventpoll", "eventfd"])
      let loops = try (0..<20).map { _ in try EventLoop(name: "left-behind") }
      for loop in loops { try await loop.perform {} }
      #expect(descriptors(of: ["eventpoll", "eventfd"]) > before)
      #expect(threadNames().filter { $0 == "left-behind" }.count == 20)
      for loop in loops { loop.stop() }
      // Descriptors of libdispatch come and go, so the test waits until there are not more than before. It
      // also waits for the threads: the kernel removes the entry of a thread in /proc a moment after the
      // thread can be joined.
      try await wait(for: "nothing to be left") {
        descriptors(of: ["eventpoll", "eventfd"]) <= before && !threadNames().contains("left-behind")
      }
      for loop in loops { #expect(!loop.submit(ClosureWork {})) }
    }
  }
}

/// Records how many steps are left, and submits work that does the next step, until none is left.
private func submitChain(of rest: Int, to loop: EventLoop, _ record: EventRecorder<String>) {
  record.record("\(rest) to go")
  if rest > 0 { _ = loop.submit(ClosureWork { submitChain(of: rest - 1, to: loop, record) }) }
}

/// Blocks the threads that call `pass` until another thread calls `open`.
private final class Gate: Sendable {
  private let isOpen = Atomic<Bool>(false)
  func open() { isOpen.store(true, ordering: .releasing) }
  func pass() {
    while !isOpen.load(ordering: .acquiring) { sched_yield() }
  }
}

private final class Counter: Sendable {
  private let count = Atomic<Int>(0)
  var value: Int { count.load(ordering: .relaxed) }
  func add() { count.add(1, ordering: .relaxed) }
}

/// A weak reference to an object, which shows whether the object has been released.
///
/// Unchecked sendable: every access happens under a lock.
private struct WeakReference: @unchecked Sendable {
  weak var object: AnyObject?
  init(_ object: AnyObject) { self.object = object }
}
