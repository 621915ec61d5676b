import Glibc
import NetOptCore
import NetOptEngine
import NetOptTestSupport
import TestTools
import Testing

/// Submitted work, turns and timers.
@Suite(.timeLimit(.minutes(1))) struct EventLoopTests {
  @Test("timers at extreme times in the past fire at once, and those in the future do not fire")
  func extremeTimes() async throws {
    let loop = try EventLoop()
    let fired = EventRecorder<Int64>()
    try await loop.perform {
      for moment in ExtremeNumbers.moments {
        loop.schedule(ClosureTimer { _ in fired.record(moment.nanoseconds) }, at: moment)
      }
    }
    let now = loop.now()
    let past = ExtremeNumbers.moments.filter { $0 <= now }.map(\.nanoseconds)
    try await fired.wait(for: "the timers that were due") { $0.count == past.count }
    for _ in 0..<10 { try await loop.perform {} }
    #expect(fired.events.sorted() == past.sorted())
    loop.stop()
  }

  @Test("the loop runs submitted work on its thread in the order of submission")
  func submissionOrder() async throws {
    let loop = try EventLoop()
    let record = EventRecorder<Int>()
    for index in 0..<1000 {
      let accepted = loop.submit(ClosureWork { if loop.isCurrent { record.record(index) } })
      #expect(accepted)
    }
    try await loop.perform {}
    #expect(record.events == Array(0..<1000))
    #expect(!loop.isCurrent)
    loop.stop()
  }

  @Test("the loop runs the work of each of four concurrent tasks in the order of submission")
  func concurrentSubmitters() async throws {
    let loop = try EventLoop()
    let record = EventRecorder<(task: Int, index: Int)>()
    await withTaskGroup { group in
      for task in 0..<4 {
        group.addTask {
          for index in 0..<5000 { _ = loop.submit(ClosureWork { record.record((task, index)) }) }
        }
      }
    }
    loop.stop()
    for task in 0..<4 {
      #expect(record.events.filter { $0.task == task }.map(\.index) == Array(0..<5000))
    }
  }

  @Test("each of 5000 submissions wakes the loop from sleep")
  func wakesFromSleep() async throws {
    let loop = try EventLoop()
    // `perform` returns when its work has run, and the loop then goes to sleep. So the next submission comes
    // when the loop has just gone to sleep, or is about to.
    for index in 0..<5000 {
      #expect(try await loop.perform { index } == index)
    }
    loop.stop()
  }

  @Test("work that running work submits runs after the end-of-turn handlers")
  func nestedSubmission() async throws {
    let loop = try EventLoop()
    let record = EventRecorder<String>()
    try await loop.perform {
      _ = loop.submit(
        ClosureWork {
          record.record("second turn")
          loop.atEndOfTurn(ClosureTurnHandler { _ in record.record("second end") })
        })
      loop.atEndOfTurn(ClosureTurnHandler { _ in record.record("first end") })
      record.record("first turn")
    }
    loop.stop()
    #expect(record.events == ["first turn", "first end", "second turn", "second end"])
  }

  @Test("an end-of-turn handler that registers again runs again before work that was submitted")
  func repeatedTurnHandler() async throws {
    let loop = try EventLoop()
    let record = EventRecorder<String>()
    try await loop.perform {
      var rounds = 0
      loop.atEndOfTurn(
        ClosureTurnHandler { handler in
          rounds += 1
          record.record("round \(rounds)")
          if rounds < 3 { loop.atEndOfTurn(handler) }
        })
      _ = loop.submit(ClosureWork { record.record("next turn") })
    }
    loop.stop()
    #expect(record.events == ["round 1", "round 2", "round 3", "next turn"])
  }

  // MARK: Timers

  @Test func timersFireInOrderAndNotEarly() async throws {
    let loop = try EventLoop()
    // For each timer that fired: its delay in milliseconds as its name, and how long after its due time it
    // fired.
    let record = EventRecorder<(name: Int, late: Duration)>()
    await withCheckedContinuation { continuation in
      let work = ClosureWork {
        let start = loop.now()
        for delay in [5, 1, 3] {
          let due = start + .milliseconds(delay)
          let timer = ClosureTimer { timer in
            #expect(!timer.isScheduled)
            record.record((delay, loop.now() - due))
            if delay == 5 { continuation.resume() }
          }
          loop.schedule(timer, at: due)
        }
      }
      #expect(loop.submit(work))
    }
    loop.stop()
    #expect(record.events.map(\.name) == [1, 3, 5])
    #expect(record.events.allSatisfy { $0.late >= .zero })
  }

  @Test("a cancelled timer does not fire, even when the timer before it cancels it")
  func cancelledTimer() async throws {
    let loop = try EventLoop()
    let record = EventRecorder<String>()
    await withCheckedContinuation { continuation in
      let work = ClosureWork {
        let due = loop.now() + .milliseconds(1)
        let cancelled = ClosureTimer { _ in record.record("cancelled") }
        // Due 1 ns after `first`, which cancels this timer when it fires.
        let overtaken = ClosureTimer { _ in record.record("overtaken") }
        let first = ClosureTimer { _ in
          record.record("first")
          loop.cancel(overtaken)
        }
        let last = ClosureTimer { _ in continuation.resume() }
        loop.schedule(cancelled, at: due)
        loop.schedule(first, at: due)
        loop.schedule(overtaken, at: due + .nanoseconds(1))
        loop.schedule(last, at: due + .nanoseconds(2))
        loop.cancel(cancelled)
      }
      #expect(loop.submit(work))
    }
    loop.stop()
    #expect(record.events == ["first"])
  }

  @Test("scheduling a timer again moves it to the new time")
  func rescheduledTimer() async throws {
    let loop = try EventLoop()
    let fired = await withCheckedContinuation { continuation in
      let work = ClosureWork {
        let start = loop.now()
        let timer = ClosureTimer { _ in continuation.resume(returning: loop.now() - start) }
        loop.schedule(timer, at: start + .seconds(3600))
        loop.schedule(timer, at: start + .milliseconds(1))
        loop.schedule(timer, at: start + .milliseconds(4))
      }
      #expect(loop.submit(work))
    }
    loop.stop()
    #expect(fired >= .milliseconds(4))
  }

  @Test("a timer that always reschedules itself as due does not block submitted work")
  func alwaysDueTimer() async throws {
    let loop = try EventLoop()
    let record = EventRecorder<String>()
    try await loop.perform {
      let timer = ClosureTimer { timer in
        record.record("fired")
        loop.schedule(timer, at: MonotonicInstant(nanoseconds: 0))
      }
      loop.schedule(timer, at: loop.now())
    }
    // If the timer fired again and again in one turn, the loop would never run the submitted work.
    for _ in 0..<100 { try await loop.perform {} }
    loop.stop()
    #expect(record.events.count > 1)
  }

  @Test("the loop runs submitted work while a timer at the end of time is scheduled")
  func timerAtEndOfTime() async throws {
    let loop = try EventLoop()
    try await loop.perform {
      loop.schedule(ClosureTimer { _ in }, at: MonotonicInstant(nanoseconds: .max))
    }
    #expect(try await loop.perform { 1 } == 1)
    loop.stop()
  }

  // MARK: Confinement

  @Test func watchingFromAnotherThreadTraps() async throws {
    await #expect(processExitsWith: .failure) {
      let loop = try EventLoop()
      loop.watch(0, for: .read, ClosureHandler { _, _ in })
    }
  }

  @Test("without a free descriptor, creating a loop throws EMFILE and mentions ulimit -n")
  func descriptorLimit() async throws {
    await #expect(processExitsWith: .success) {
      let openFiles = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
      var limit = rlimit()
      getrlimit(openFiles, &limit)
      var none = rlimit(rlim_cur: 0, rlim_max: limit.rlim_max)
      setrlimit(openFiles, &none)
      let error = #expect(throws: NetOptError.self) { try EventLoop() }
      setrlimit(openFiles, &limit)
      #expect(error?.code == .libraryFailed)
      #expect(error?.underlying == .init(.system, code: EMFILE, text: String(cString: strerror(EMFILE))))
      #expect(error?.message.contains("ulimit -n") == true)
    }
  }

  @Test("on the loop's thread, a write to a closed peer fails with EPIPE and raises no signal")
  func brokenPipe() async throws {
    await #expect(processExitsWith: .success) {
      let loop = try EventLoop()
      let sockets = try SocketPair()
      close(sockets.theirs)
      let code = try await loop.perform {
        var byte: UInt8 = 1
        return write(sockets.ours, &byte, 1) < 0 ? errno : 0
      }
      #expect(code == EPIPE)
      loop.stop()
    }
  }
}
