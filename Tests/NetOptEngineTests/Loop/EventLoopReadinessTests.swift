import Glibc
import NetOptEngine
import NetOptTestSupport
import TestTools
import Testing

/// Watched descriptors, their handlers, and stale events.
@Suite(.timeLimit(.minutes(1))) struct EventLoopReadinessTests {
  @Test("a handler gets only the readiness that it watches for")
  func reportsReadiness() async throws {
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

  @Test("watching a descriptor again replaces its interest and its handler")
  func replacesInterest() async throws {
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

  @Test("a handler that watches for nothing still gets a hang-up")
  func hangUp() async throws {
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

  /// A library may close a socket and call `unwatch` for it later. In between, another library may open and
  /// watch a socket with the same number.
  @Test("unwatching a reused number for its old handler keeps the new handler")
  func reusedNumber() async throws {
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

  @Test("a handler can unwatch a ready descriptor, and the loop then drops its event")
  func unwatchesReadyDescriptor() async throws {
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

  /// Two descriptors are ready in one turn. The handler of the first descriptor closes the second one. A new
  /// descriptor, which is not ready, gets the number of the second one. The event of the second descriptor
  /// must not reach the handler of the new one.
  @Test("an event of a closed descriptor does not reach a new descriptor with the same number")
  func staleEvent() async throws {
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
        // dup2 closes the descriptor and opens the new one with its number.
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

  /// A library may close a socket and open its next socket in the same turn, with the same number. The loop
  /// then sees only another call of `watch` with the same number, readiness and handler.
  @Test("the loop watches a reopened descriptor that was never unwatched")
  func reopenedDescriptor() async throws {
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

  @Test("watching and unwatching closed or unknown descriptors is harmless")
  func closedDescriptors() async throws {
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

  /// libcurl asks to watch the number -1 when it could not open a socket.
  @Test(
    "watching a number that is not an open descriptor does nothing and takes less than 8 MB",
    arguments: [Int32.min, -1, 1_000_000])
  func invalidNumber(_ number: Int32) async throws {
    await #expect(processExitsWith: .success) { [number] in
      let loop = try EventLoop()
      let record = EventRecorder<Int32>()
      let before = ProcessFootprint.now.memoryBytes
      try await loop.perform {
        loop.watch(number, for: [.read, .write], ClosureHandler { number, _ in record.record(number) })
        loop.watch(number, for: [.read], ClosureHandler { number, _ in record.record(number) })
      }
      // A `DescriptorTable` with a place for the number 1,000,000 would take 24 MB.
      #expect(ProcessFootprint.now.memoryBytes - before < 8 << 20)
      try await loop.perform { loop.unwatch(number) }
      for _ in 0..<10 { try await loop.perform {} }
      #expect(record.events.isEmpty)
      loop.stop()
    }
  }

  @Test("watching a closed descriptor releases its old and its new handler")
  func refusedDescriptor() async throws {
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

  @Test("a handler can call the loop while the loop releases the handler")
  func releasedHandler() async throws {
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

  /// One wait of the poller returns at most 256 ready descriptors. Later waits return the others.
  @Test("the loop reports all of 400 ready descriptors")
  func manyDescriptors() async throws {
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

/// A handler that calls the loop when it is released: it stops watching a descriptor, and then calls a
/// closure.
private final class Goodbye: ReadinessHandler {
  private let loop: EventLoop
  /// The descriptor to stop watching. It need not be the one that this handler watches.
  private let descriptor: Int32
  /// Called when the handler is released.
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
