import Glibc
import NetOptEngine
import Testing

/// Tests the event loop as the executor of actors and of tasks.
@Suite(.timeLimit(.minutes(1))) struct LoopExecutorTests {
  @Test("an actor on the loop runs only on the loop's thread")
  func actorOnLoop() async throws {
    let loop = try EventLoop()
    let counter = PinnedCounter(loop)
    await withTaskGroup { group in
      for _ in 0..<8 {
        group.addTask { for _ in 0..<200 { await counter.add() } }
      }
    }
    #expect(await counter.count == 1600)
    #expect(await counter.sawAnotherThread == false)
    loop.stop()
  }

  @Test("a readiness handler can call its actor synchronously")
  func synchronousHandler() async throws {
    let loop = try EventLoop()
    let sockets = try SocketPair()
    let counter = PinnedCounter(loop)
    await counter.watch(sockets.ours)
    sockets.send()
    while await counter.count == 0 {}
    #expect(await counter.count == 1)
    loop.stop()
    sockets.close()
  }

  @Test("assuming the actor's isolation on another thread traps")
  func isolationElsewhere() async throws {
    await #expect(processExitsWith: .failure) {
      let loop = try EventLoop()
      let counter = PinnedCounter(loop)
      counter.ready(0, for: .read)
    }
  }

  @Test("a task that prefers the loop stays on its thread after suspensions and in child tasks")
  func tasksOnLoop() async throws {
    let loop = try EventLoop()
    let executor = LoopTaskExecutor(loop)
    let onLoop = await Task(executorPreference: executor) {
      var onLoop = [loop.isCurrent]
      await Task.yield()
      onLoop.append(loop.isCurrent)
      // Another thread resumes the task.
      await withCheckedContinuation { continuation in
        Task.detached { continuation.resume() }
      }
      onLoop.append(loop.isCurrent)
      async let child = loop.isCurrent
      onLoop.append(await child)
      return onLoop
    }.value
    #expect(onLoop == [true, true, true, true])
    loop.stop()
  }

  @Test("tasks of a stopped loop continue and start on other threads")
  func tasksAfterStop() async throws {
    let loop = try EventLoop()
    let executor = LoopTaskExecutor(loop)
    // Each stream serves as a signal: it has no elements, and the loop over it ends when `finish` is called.
    let (signal, resume) = AsyncStream.makeStream(of: Void.self)
    let (started, start) = AsyncStream.makeStream(of: Void.self)
    let waiting = Task(executorPreference: executor) {
      let before = loop.isCurrent
      start.finish()
      for await _ in signal {}
      return (before, loop.isCurrent)
    }
    for await _ in started {}
    // The task is suspended, or soon will be. `stop` waits for submitted work, but not for tasks.
    loop.stop()
    resume.finish()
    #expect(await waiting.value == (true, false))
    let late = Task(executorPreference: executor) { loop.isCurrent }
    #expect(await late.value == false)
  }

  @Test func anActorThatOutlivesItsLoopTraps() async throws {
    await #expect(processExitsWith: .failure) {
      let loop = try EventLoop()
      let counter = PinnedCounter(loop)
      loop.stop()
      await counter.add()
    }
  }
}

/// An actor whose executor is an event loop. It counts the calls of `add`. As a readiness handler, it calls
/// `add` when a descriptor becomes readable.
private actor PinnedCounter: ReadinessHandler {
  /// The loop that runs the actor.
  private nonisolated let loop: EventLoop
  /// The number of calls of `add`.
  private(set) var count = 0
  /// Whether a call of `add` ran on another thread than the loop's.
  private(set) var sawAnotherThread = false

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  init(_ loop: EventLoop) { self.loop = loop }

  func add() {
    count += 1
    if !loop.isCurrent { sawAnotherThread = true }
  }

  func watch(_ descriptor: Int32) { loop.watch(descriptor, for: .read, self) }

  /// Called by the loop, on its thread. On any other thread, `assumeIsolated` traps.
  nonisolated func ready(_ descriptor: Int32, for readiness: Readiness) {
    assumeIsolated { counter in
      counter.add()
      counter.loop.unwatch(descriptor)
    }
  }
}
