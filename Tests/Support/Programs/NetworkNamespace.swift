import NetOptTestSupport
import Dispatch
import Glibc
import NetOptLocking

/// An isolated network: a thread in a new network namespace (network_namespaces(7)) that runs closures.
/// Threads, sockets and programs that a closure starts belong to the namespace as well. The namespace
/// disappears when nothing in it is left. Making a namespace requires root.
package final class NetworkNamespace: Sendable {
  /// The reason for skipping a test where no namespace can be made.
  package static let missing =
    "network namespaces take root and ip(8), and a kernel or sandbox that allows them"

  /// Whether this process can make a namespace.
  package static let isAvailable: Bool = {
    guard let namespace = try? NetworkNamespace() else { return false }
    namespace.end()
    return true
  }()

  private let work = Pipeline()
  private let thread: JoinableThread

  /// Makes a namespace with its loopback interface up.
  ///
  /// - Throws: `TestSupportError` when the system does not permit a namespace.
  package init() throws {
    let started = Pipeline.Answer<Int32>()
    let work = work
    thread = try JoinableThread {
      // CLONE_NEWNET of sched.h is declared only with _GNU_SOURCE.
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

  /// Moves the calling thread into a new namespace permanently. Threads and programs that the thread starts
  /// later are in the namespace as well. The loopback interface is down.
  ///
  /// - Throws: `TestSupportError` when the system does not permit a namespace.
  package static func enterNew() throws {
    guard unshareNetwork() == 0 else { throw systemError("no network namespace could be made") }
  }

  /// Ends the thread.
  package func end() {
    work.close()
    thread.join()
  }

  /// Runs a closure in the namespace and returns after it. Blocks the calling thread, so the closure must be
  /// quick.
  package func run<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) throws -> Result {
    let answer = Pipeline.Answer<Swift.Result<Result, any Error>>()
    guard work.submit({ answer.give(Swift.Result(catching: body)) }) else {
      throw TestSupportError("the network namespace has ended")
    }
    return try answer.take().get()
  }

  /// Runs ip(8) in the namespace.
  ///
  /// - Parameter arguments: the arguments, separated by spaces.
  /// - Throws: `TestSupportError` when ip(8) fails.
  package func ip(_ arguments: String) throws {
    let words = arguments.split(separator: " ").map(String.init)
    try run { try Self.command("ip", words) }
  }

  /// Makes a network interface and sets it up. No program listens at its other end.
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

/// Calls unshare(2) for the network, with the number of the flag: sched.h declares both only as a GNU
/// extension.
private func unshareNetwork() -> Int32 {
  typealias Unshare = @convention(c) (Int32) -> Int32
  guard let symbol = dlsym(nil, "unshare") else { return -1 }
  // This is the type of the C library's `unshare`.
  return unsafeBitCast(symbol, to: Unshare.self)(0x4000_0000)
}

/// A queue of closures for a thread, which runs them in order.
private final class Pipeline: Sendable {
  private struct State {
    var closures: [@Sendable () -> Void] = []
    var isClosed = false
  }

  /// A value that one thread gives and another thread waits for.
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
