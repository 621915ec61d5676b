import Glibc
import NetOptEngine
import NetOptTestSupport
import TestTools
import Testing

/// Descriptors, their handlers, and events that come too late.
@Suite(.timeLimit(.minutes(1))) struct EventLoopReadinessTests {
  @Test func reportsWhatADescriptorIsWatchedFor() async throws {
    let loop = try EventLoop()
    let sockets = try SocketPair()
    let record = EventRecorder<(Int32, Readiness)>()
    try await loop.perform {
      sockets.send()
      loop.watch(
        sockets.ours, for: .read,
        ClosureHandler { descriptor, readiness in
          loop.unwatch(descriptor)
          record.record((descriptor, readiness))
        })
    }
    let reported = try await record.wait(for: "readiness") { !$0.isEmpty }
    #expect(reported.first ?? (-1, []) == (sockets.ours, .read))
    loop.stop()
    sockets.close()
  }

  @Test func aChangedInterestReplacesTheFormerOne() async throws {
    let loop = try EventLoop()
    let sockets = try SocketPair()
    let record = EventRecorder<Readiness>()
    try await loop.perform {
      sockets.send()
      let second = ClosureHandler { descriptor, readiness in
        loop.unwatch(descriptor)
        record.record(readiness)
      }
      let first = ClosureHandler { descriptor, readiness in
        record.record(readiness)
        loop.watch(descriptor, for: .read, second)
      }
      loop.watch(sockets.ours, for: .write, first)
    }
    #expect(try await record.wait(for: "both") { $0.count == 2 } == [.write, .read])
    loop.stop()
    sockets.close()
  }

  @Test func aHangUpIsReportedUnasked() async throws {
    let loop = try EventLoop()
    let sockets = try SocketPair()
    let record = EventRecorder<Readiness>()
    try await loop.perform {
      loop.watch(
        sockets.ours, for: [],
        ClosureHandler { descriptor, readiness in
          loop.unwatch(descriptor)
          record.record(readiness)
        })
      close(sockets.theirs)
    }
    #expect(try await record.wait(for: "the hang-up") { !$0.isEmpty } == [.error])
    loop.stop()
    close(sockets.ours)
  }

  @Test func anUnwatchedDescriptorIsNotReported() async throws {
    let loop = try EventLoop()
    let sockets = try SocketPair()
    let record = EventRecorder<Readiness>()
    try await loop.perform {
      sockets.send()
      loop.watch(sockets.ours, for: .read, ClosureHandler { _, readiness in record.record(readiness) })
      loop.unwatch(sockets.ours)
    }
    for _ in 0..<10 { try await loop.perform {} }
    #expect(record.events.isEmpty)
    loop.stop()
    sockets.close()
  }

  /// A library closes a socket and says so later than another one opens the next socket with its number.
  @Test func aNumberThatIsAnotherHandlersIsLeftToIt() async throws {
    let loop = try EventLoop()
    let (first, second) = (try SocketPair(), try SocketPair())
    let record = EventRecorder<String>()
    try await loop.perform {
      let old = ClosureHandler { _, _ in record.record("old") }
      let new = ClosureHandler { descriptor, _ in
        record.record("new")
        loop.unwatch(descriptor)
      }
      loop.watch(first.ours, for: .read, old)
      dup2(second.ours, first.ours)
      loop.watch(first.ours, for: .read, new)
      loop.unwatch(first.ours, of: old)
      second.send()
    }
    #expect(try await record.wait(for: "readiness") { !$0.isEmpty } == ["new"])
    loop.stop()
    for pair in [first, second] { pair.close() }
  }

  @Test func aHandlerMayUnwatchAnotherThatIsReadyToo() async throws {
    let loop = try EventLoop()
    let pairs = [try SocketPair(), try SocketPair()]
    let record = EventRecorder<Int32>()
    try await loop.perform {
      let handler = ClosureHandler { descriptor, _ in
        record.record(descriptor)
        for pair in pairs { loop.unwatch(pair.ours) }
      }
      for pair in pairs {
        pair.send()
        loop.watch(pair.ours, for: .read, handler)
      }
    }
    for _ in 0..<10 { try await loop.perform {} }
    #expect(record.events.count == 1)
    loop.stop()
    for pair in pairs { pair.close() }
  }

  /// Both descriptors are ready in one turn. The handler of the first closes the second and has its number reused
  /// for one that is not ready: the event of that turn is not the new descriptor's.
  @Test func anEventOfAClosedDescriptorDoesNotReachTheNextOneWithItsNumber() async throws {
    let loop = try EventLoop()
    let pairs = [try SocketPair(), try SocketPair()]
    let fresh = try SocketPair()
    let record = EventRecorder<String>()
    let reused = try await loop.perform {
      let reused = EventRecorder<Int32>()
      let newHandler = ClosureHandler { descriptor, readiness in
        record.record(readiness == .read ? "new" : "not asked for")
        loop.unwatch(descriptor)
      }
      let handler = ClosureHandler { descriptor, _ in
        record.record("old")
        guard let other = pairs.first(where: { $0.ours != descriptor }) else { return }
        loop.unwatch(descriptor)
        // dup2 closes the number and opens it anew.
        dup2(fresh.ours, other.ours)
        loop.watch(other.ours, for: .read, newHandler)
        reused.record(other.ours)
      }
      for pair in pairs {
        pair.send()
        loop.watch(pair.ours, for: .read, handler)
      }
      return reused
    }
    try await reused.wait(for: "the number to be in use again") { !$0.isEmpty }
    for _ in 0..<10 { try await loop.perform {} }
    #expect(record.events == ["old"])
    fresh.send()
    try await record.wait(for: "the new descriptor") { $0.count == 2 }
    #expect(record.events == ["old", "new"])
    loop.stop()
    for pair in pairs + [fresh] { pair.close() }
  }

  /// What a library does that closes a socket and opens the next one in the same turn: all that is seen at its end is
  /// the same number, watched for the same thing by the same handler.
  @Test func aReopenedDescriptorIsWatchedWithoutHavingBeenUnwatched() async throws {
    let loop = try EventLoop()
    let (first, second) = (try SocketPair(), try SocketPair())
    let record = EventRecorder<Int32>()
    try await loop.perform {
      let handler = ClosureHandler { descriptor, _ in
        loop.unwatch(descriptor)
        record.record(descriptor)
      }
      loop.watch(first.ours, for: .read, handler)
      dup2(second.ours, first.ours)
      loop.watch(first.ours, for: .read, handler)
      second.send()
    }
    #expect(try await record.wait(for: "readiness") { !$0.isEmpty } == [first.ours])
    loop.stop()
    for pair in [first, second] { pair.close() }
  }

  @Test func closedAndUnknownDescriptorsAreTolerated() async throws {
    let loop = try EventLoop()
    let sockets = try SocketPair()
    let stillRuns = try await loop.perform {
      let handler = ClosureHandler { _, _ in }
      loop.unwatch(sockets.ours)
      loop.watch(sockets.ours, for: .read, handler)
      sockets.close()
      loop.watch(sockets.ours, for: .write, handler)
      loop.unwatch(sockets.ours)
      loop.unwatch(sockets.ours)
      loop.watch(sockets.theirs, for: .read, handler)
      loop.unwatch(sockets.theirs)
      return true
    }
    #expect(stillRuns)
    loop.stop()
  }

  /// libcurl reports -1 for a socket that it could not open.
  @Test("a number that is no open descriptor is ignored", arguments: [Int32.min, -1, 1_000_000])
  func aNumberThatIsNoDescriptorIsIgnored(_ number: Int32) async throws {
    await #expect(processExitsWith: .success) { [number] in
      let loop = try EventLoop()
      let record = EventRecorder<Int32>()
      let before = ProcessFootprint.now.memoryBytes
      try await loop.perform {
        loop.watch(number, for: [.read, .write], ClosureHandler { number, _ in record.record(number) })
        loop.watch(number, for: [.read], ClosureHandler { number, _ in record.record(number) })
      }
      // A table up to this number takes 24 MB.
      #expect(ProcessFootprint.now.memoryBytes - before < 8 << 20)
      try await loop.perform { loop.unwatch(number) }
      for _ in 0..<10 { try await loop.perform {} }
      #expect(record.events.isEmpty)
      loop.stop()
    }
  }

  @Test("a closed descriptor that is watched again has no handler left")
  func aRefusedDescriptorLosesItsHandler() async throws {
    let loop = try EventLoop()
    let sockets = try SocketPair()
    let record = EventRecorder<String>()
    try await loop.perform {
      loop.watch(sockets.ours, for: .read, Goodbye(loop, sockets.theirs) { record.record("first") })
      close(sockets.ours)
      loop.watch(sockets.ours, for: .read, Goodbye(loop, sockets.theirs) { record.record("second") })
    }
    #expect(record.events.sorted() == ["first", "second"])
    loop.stop()
    close(sockets.theirs)
  }

  @Test func aHandlerThatIsLetGoOfMayCallTheLoop() async throws {
    let loop = try EventLoop()
    let sockets = try SocketPair()
    let record = EventRecorder<String>()
    try await loop.perform {
      loop.watch(sockets.ours, for: .read, Goodbye(loop, sockets.ours) { record.record("unwatched") })
      loop.unwatch(sockets.ours)
      loop.watch(sockets.ours, for: .read, Goodbye(loop, sockets.theirs) { record.record("replaced") })
      loop.watch(sockets.ours, for: .read, Goodbye(loop, sockets.theirs) { record.record("stopped") })
    }
    #expect(record.events == ["unwatched", "replaced"])
    loop.stop()
    #expect(record.events == ["unwatched", "replaced", "stopped"])
    sockets.close()
  }

  /// Many more ready descriptors than one wait reports.
  @Test func allOfManyReadyDescriptorsAreReported() async throws {
    let loop = try EventLoop()
    let pairs = try (0..<400).map { _ in try SocketPair() }
    let record = EventRecorder<Int32>()
    try await loop.perform {
      let handler = ClosureHandler { descriptor, _ in
        record.record(descriptor)
        loop.unwatch(descriptor)
      }
      for pair in pairs {
        pair.send()
        loop.watch(pair.ours, for: .read, handler)
      }
    }
    let reported = try await record.wait(for: "all of them") { $0.count == pairs.count }
    #expect(reported.sorted() == pairs.map(\.ours).sorted())
    loop.stop()
    for pair in pairs { pair.close() }
  }
}

/// A handler that calls the loop when nobody holds it any more.
private final class Goodbye: ReadinessHandler {
  private let loop: EventLoop
  private let descriptor: Int32
  private let said: () -> Void

  init(_ loop: EventLoop, _ descriptor: Int32, _ said: @escaping () -> Void) {
    self.loop = loop
    self.descriptor = descriptor
    self.said = said
  }

  deinit {
    loop.unwatch(descriptor)
    said()
  }

  func ready(_ descriptor: Int32, for readiness: Readiness) {}
}
