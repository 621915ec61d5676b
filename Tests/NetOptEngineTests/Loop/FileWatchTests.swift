import Glibc
import NetOptCore
import NetOptLocking
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptEngine

/// Tests `FileWatch` in unusual conditions: the system refuses inotify or a directory, a directory is
/// missing, or a link is replaced while the watch starts. The tests of IP lists cover the usual changes of
/// watched files.
@Suite struct FileWatchTests {
  @Test("the pauses between checks double from 1 s to 30 s, and a reset starts at 1 s again")
  func pauses() {
    var pauses = PollBackoff()
    var now = MonotonicInstant(nanoseconds: 0)
    var waited: [Duration] = []
    for _ in 0..<7 {
      let next = pauses.next(at: now)
      // `next` returns the same moment until that moment has come. So a check for another reason, such as a
      // change of a file, does not postpone this one.
      #expect(pauses.next(at: now + .milliseconds(10)) == next)
      waited.append(next - now)
      now = next
    }
    #expect(waited == [1, 2, 4, 8, 16, 30, 30].map { Duration.seconds($0) })
    pauses.reset()
    #expect(pauses.next(at: now) == now + .seconds(1))
  }

  @Test("the watch reports only once that inotify refuses a directory")
  func reportsRefusalOnce() async throws {
    let loop = try EventLoop()
    let failures = EventRecorder<NetOptError>()
    // The name is too long for a file name, so inotify_add_watch(2) refuses it.
    let folder = "/tmp/" + String(repeating: "x", count: 300)
    let watch = FileWatch(
      loop, ["\(folder)/list.json", "\(folder)/list.json.minisig"], known: [nil, nil], onChange: {},
      onFailure: { failures.record($0) })
    watch.start()
    try await failures.wait(for: "the refusal") { !$0.isEmpty }
    // The system also refuses the second attempt, 1 s later. The third attempt is due 2 s after the second.
    // So when the next attempt is more than 1.5 s ahead, the second attempt is over.
    let looks = LoopProbe(loop)
    try await wait(for: "another look") { await looks.due(of: watch) > loop.now() + .milliseconds(1500) }
    let message = failures.events[0].message
    #expect(failures.events.count == 1)
    #expect(
      message.contains(folder) && message.contains("list.json") && message.contains("30 s late"), "\(message)"
    )
    watch.stop()
    loop.stop()
  }

  /// A link can be replaced after the watch has followed the link and before the watch covers the link's
  /// directory. inotify does not report that change.
  @Test("the watch follows a link that is replaced during its start, and then reports a replaced file")
  func replacedAtStart() async throws {
    let directory = try TemporaryDirectory.make("watch")
    let loop = try EventLoop()
    var random = SplitMix64(seed: 5)
    for round in 0..<8 {
      // What the callback of each watch read last, by the number of the watch.
      let read = Locked<[Int: String]>([:])
      var watches: [FileWatch] = []
      for number in 0..<40 {
        let folder = "\(directory)/\(round)-\(number)"
        // The path `link.json` leads to `data/list.json`, and `data` is a link to the directory `one`. The
        // rename below replaces `data` by a link to the directory `two`.
        for name in ["", "/one", "/two"] { try #require(mkdir(folder + name, 0o755) == 0) }
        for name in ["one", "two"] { try Self.write(name, to: "\(folder)/\(name)/list.json") }
        try #require(symlink("one", "\(folder)/data") == 0)
        try #require(symlink("two", "\(folder)/next") == 0)
        try #require(symlink("data/list.json", "\(folder)/link.json") == 0)
        let path = "\(folder)/link.json"
        let watch = FileWatch(
          loop, [path], known: [FileIdentity(path)],
          onChange: {
            let text = (try? FileBytes.read(path, upTo: 100, as: "the test's file", in: .list)) ?? []
            read.withLock { $0[number] = String(decoding: text, as: UTF8.self) }
          }, onFailure: { Issue.record("\($0)") })
        watches.append(watch)
        watch.start()
        // The rename comes after a random pause, so that it meets different steps of the start.
        usleep(UInt32(random.next() % 100))
        try #require(rename("\(folder)/next", "\(folder)/data") == 0)
      }
      try await wait(for: "the second directories") { read.withLock { $0.count { $0.value == "two" } } == 40 }
      for number in 0..<40 {
        let folder = "\(directory)/\(round)-\(number)/two"
        try Self.write("three", to: "\(folder)/draft")
        try #require(rename("\(folder)/draft", "\(folder)/list.json") == 0)
      }
      try await wait(for: "the files in them", within: .seconds(10)) {
        read.withLock { $0.count { $0.value == "three" } } == 40
      }
      for watch in watches { watch.stop() }
    }
    loop.stop()
  }

  private static func write(_ text: String, to path: String) throws {
    try FileBytes.replace(path, with: Array(text.utf8), mode: 0o644, as: "the test's file", in: .list)
  }

  @Test("without inotify, the watch reports one failure and still finds a new file")
  func withoutInotify() async throws {
    let directory = try TemporaryDirectory.make("watch")
    let loop = try EventLoop()
    let failures = EventRecorder<NetOptError>()
    let changes = EventRecorder<Bool>()
    let path = "\(directory)/list.json"
    let watch = FileWatch(
      loop, [path], known: [nil], onChange: { changes.record(true) }, onFailure: { failures.record($0) },
      open: {
        errno = EMFILE
        return -1
      })
    watch.start()
    try await failures.wait(for: "the refusal") { !$0.isEmpty }
    try FileBytes.replace(path, with: [1], mode: 0o644, as: "the file", in: .list)
    try await changes.wait(for: "the file") { !$0.isEmpty }
    let message = failures.events[0].message
    #expect(failures.events.count == 1)
    #expect(message.contains("inotify_init1") && message.contains("30 s late"), "\(message)")
    watch.stop()
    loop.stop()
  }

  @Test("the watch of a missing directory reports no failure, and finds a file there later")
  func missingDirectory() async throws {
    let directory = try TemporaryDirectory.make("watch")
    let loop = try EventLoop()
    // `true` stands for a change, `false` for a failure.
    let changes = EventRecorder<Bool>()
    let path = "\(directory)/later/list.json"
    let watch = FileWatch(
      loop, [path], known: [nil], onChange: { changes.record(true) },
      onFailure: { _ in changes.record(false) })
    watch.start()
    try #require(mkdir("\(directory)/later", 0o755) == 0)
    try FileBytes.replace(path, with: [1], mode: 0o644, as: "the file", in: .list)
    try await changes.wait(for: "the file") { !$0.isEmpty }
    #expect(changes.events == [true])
    watch.stop()
    loop.stop()
  }
}

/// Reads when a watch checks its files next. A `FileWatch` is a timer that belongs to the loop's thread, so
/// the reading is done on that thread.
private struct LoopProbe {
  private let loop: EventLoop

  init(_ loop: EventLoop) { self.loop = loop }

  /// The moment of the watch's next check, by the loop's clock; 0 when no check is scheduled.
  func due(of timer: FileWatch) async -> MonotonicInstant {
    await withCheckedContinuation { continuation in
      _ = loop.submit(Look(loop, timer, continuation))
    }
  }

  /// The work on the loop: reads the due time of the watch, and resumes the caller with it.
  private final class Look: LoopWork {
    private let loop: EventLoop
    private let timer: FileWatch
    private let continuation: CheckedContinuation<MonotonicInstant, Never>

    init(
      _ loop: EventLoop, _ timer: FileWatch, _ continuation: CheckedContinuation<MonotonicInstant, Never>
    ) {
      self.loop = loop
      self.timer = timer
      self.continuation = continuation
    }

    func run() {
      continuation.resume(returning: loop.due(of: timer) ?? MonotonicInstant(nanoseconds: 0))
    }
  }
}
