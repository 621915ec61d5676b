import Glibc
import NetOptCore
@testable import NetOptEngine
import NetOptTestSupport

/// Work that runs a closure.
final class ClosureWork: LoopWork {
  private let body: @Sendable () -> Void
  init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  func run() { body() }
}

extension EventLoop {
  /// Runs a closure on the loop's thread and returns its result.
  ///
  /// - Throws: `TestSupportError` when the loop has stopped.
  func perform<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async throws -> Value {
    let value: Value? = await withCheckedContinuation { continuation in
      let accepted = submit(ClosureWork { continuation.resume(returning: body()) })
      if !accepted { continuation.resume(returning: nil) }
    }
    guard let value else { throw TestSupportError("the loop has stopped") }
    return value
  }
}

/// A timer that calls a closure when it fires.
final class ClosureTimer: LoopTimer {
  private let body: (ClosureTimer) -> Void
  init(_ body: @escaping (ClosureTimer) -> Void) { self.body = body }
  override func fire() { body(self) }
}

/// A readiness handler that calls a closure.
final class ClosureHandler: ReadinessHandler {
  private let body: (Int32, Readiness) -> Void
  init(_ body: @escaping (Int32, Readiness) -> Void) { self.body = body }
  func ready(_ descriptor: Int32, for readiness: Readiness) { body(descriptor, readiness) }
}

extension EventLoop {
  /// Stops watching a descriptor for any handler. `unwatch(_:of:)` needs the handler, so a new handler first
  /// replaces the present one.
  func unwatch(_ descriptor: Int32) {
    let nobody = ClosureHandler { _, _ in }
    watch(descriptor, for: [], nobody)
    unwatch(descriptor, of: nobody)
  }
}

/// An end-of-turn handler that calls a closure.
final class ClosureTurnHandler: TurnHandler {
  private let body: (ClosureTurnHandler) -> Void
  init(_ body: @escaping (ClosureTurnHandler) -> Void) { self.body = body }
  func turnEnds() { body(self) }
}

/// Two connected sockets, both non-blocking. The tests watch `ours` and use `theirs` as the peer.
struct SocketPair {
  let ours: Int32
  let theirs: Int32

  init() throws {
    var ends: [Int32] = [0, 0]
    let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw TestSupportError("no pair of sockets") }
    (ours, theirs) = (ends[0], ends[1])
  }

  /// Writes a byte to `theirs`, so that `ours` becomes readable.
  func send() {
    var byte: UInt8 = 1
    _ = write(theirs, &byte, 1)
  }

  func close() {
    Glibc.close(ours)
    Glibc.close(theirs)
  }
}

/// The names of the threads of this process.
func threadNames() -> [String] {
  entries(of: "/proc/self/task").compactMap { thread in
    guard let file = fopen("/proc/self/task/\(thread)/comm", "r") else { return nil }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 32)
    guard fgets(&line, 32, file) != nil else { return nil }
    return String(decoding: line.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}

/// The number of descriptors of this process whose kind is one of `kinds`. A kind is the name that /proc
/// shows in `anon_inode:[NAME]`, such as `eventfd` or `eventpoll`.
func descriptors(of kinds: [String]) -> Int {
  entries(of: "/proc/self/fd").filter { descriptor in
    var target = [UInt8](repeating: 0, count: 64)
    let length = readlink("/proc/self/fd/\(descriptor)", &target, 64)
    guard length > 0 else { return false }
    let link = String(decoding: target.prefix(length), as: UTF8.self)
    return kinds.contains { link == "anon_inode:[\($0)]" }
  }.count
}

/// Returns the names in a directory that do not begin with a dot. Empty if the directory cannot be read.
private func entries(of directory: String) -> [String] {
  guard let handle = opendir(directory) else { return [] }
  defer { closedir(handle) }
  var names: [String] = []
  while let entry = readdir(handle) {
    let name = withUnsafeBytes(of: entry.pointee.d_name) { name in
      String(decoding: name.prefix { $0 != 0 }, as: UTF8.self)
    }
    if !name.hasPrefix(".") { names.append(name) }
  }
  return names
}
