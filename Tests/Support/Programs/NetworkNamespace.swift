import NetOptTestSupport
import Dispatch
import Glibc
import NetOptLocking

/// A network of its own: a thread in a new network namespace (network_namespaces(7)) that runs what it is given. What is
/// started from there, be it a thread, a socket or a program, is in that network too. It is gone when nothing of it is
/// left. Making one takes root.
package final class NetworkNamespace: Sendable {
  /// Why there is none here, for skipping a test.
  package static let missing =
    "network namespaces take root and ip(8), and a kernel or sandbox that allows them"

  /// Whether one can be made here.
  package static let isAvailable: Bool = {
    guard let namespace = try? NetworkNamespace() else { return false }
    namespace.end()
    return true
  }()

  private let work = Pipeline()
  private let thread: JoinableThread

  /// Makes one, with its loopback interface up.
  ///
  /// - Throws: `TestSupportError` when the system does not allow it.
  package init() throws {
    let started = Pipeline.Answer<Int32>()
    let work = work
    thread = try JoinableThread {
      // CLONE_NEWNET of sched.h, which needs a GNU source.
      let code = unshareNetwork() == 0 ? 0 : errno
      started.give(code)
      if code == 0 { work.run() }
    }
    let code = started.take()
    guard code == 0 else {
      thread.join()
      throw systemError("no network namespace could be made", code: code)
    }
    try run { try Self.command("ip", ["link", "set", "lo", "up"]) }
  }

  deinit { end() }

  /// Brings the calling thread into a new namespace, for good, and with it the threads and programs that it starts from then
  /// on. Its loopback interface is down.
  ///
  /// - Throws: `TestSupportError` when the system does not allow it.
  package static func enterNew() throws {
    guard unshareNetwork() == 0 else { throw systemError("no network namespace could be made") }
  }

  /// Ends the thread.
  package func end() {
    work.close()
    thread.join()
  }

  /// Runs a closure in the namespace, and returns when it is done. The calling thread waits: it must be quick.
  package func run<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) throws -> Result {
    let answer = Pipeline.Answer<Swift.Result<Result, any Error>>()
    guard work.submit({ answer.give(Swift.Result(catching: body)) }) else {
      throw TestSupportError("the network namespace has ended")
    }
    return try answer.take().get()
  }

  /// Runs `ip` with some arguments in the namespace: ip(8).
  ///
  /// - Throws: `TestSupportError` when it fails.
  package func ip(_ arguments: String) throws {
    let words = arguments.split(separator: " ").map(String.init)
    try run { try Self.command("ip", words) }
  }

  /// Makes a network interface at whose other end nobody listens, and sets it up.
  package func addLink(_ name: String) throws {
    try ip("link add \(name) type veth peer name \(name)-end")
    try ip("link set \(name)-end up")
    try ip("link set \(name) up")
  }

  private static func command(_ program: String, _ arguments: [String]) throws {
    let id = try Spawn.start(try Spawn.find(program), arguments)
    var status: Int32 = 0
    while waitpid(id, &status, 0) < 0, errno == EINTR {}
    guard status == 0 else {
      throw TestSupportError("\(program) \(arguments.joined(separator: " ")) failed with \(status >> 8)")
    }
  }
}

/// unshare(2) of the network, by number: the declaration in sched.h is a GNU extension.
private func unshareNetwork() -> Int32 {
  typealias Unshare = @convention(c) (Int32) -> Int32
  guard let symbol = dlsym(nil, "unshare") else { return -1 }
  // The C library's function of that name has this type.
  return unsafeBitCast(symbol, to: Unshare.self)(0x4000_0000)
}

/// Closures for a thread, one after the other.
private final class Pipeline: Sendable {
  private struct State {
    var closures: [@Sendable () -> Void] = []
    var isClosed = false
  }

  /// A value that one thread waits for.
  final class Answer<Value: Sendable>: Sendable {
    private let value = Locked<Value?>(nil)
    private let isThere = DispatchSemaphore(value: 0)

    func give(_ value: Value) {
      self.value.withLock { $0 = value }
      isThere.signal()
    }

    func take() -> Value {
      while true {
        isThere.wait()
        if let value = value.withLock({ $0 }) { return value }
      }
    }
  }

  private let state = Locked(State())
  private let hasNews = DispatchSemaphore(value: 0)

  func submit(_ closure: @escaping @Sendable () -> Void) -> Bool {
    let isOpen = state.withLock { state in
      if !state.isClosed { state.closures.append(closure) }
      return !state.isClosed
    }
    hasNews.signal()
    return isOpen
  }

  func close() {
    state.withLock { $0.isClosed = true }
    hasNews.signal()
  }

  func run() {
    while true {
      let (closure, isOver) = state.withLock { state -> ((@Sendable () -> Void)?, Bool) in
        (state.closures.isEmpty ? nil : state.closures.removeFirst(), state.isClosed)
      }
      if let closure { closure() } else if isOver { return } else { hasNews.wait() }
    }
  }
}
