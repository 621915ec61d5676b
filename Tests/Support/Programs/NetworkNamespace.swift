import NetOptTestSupport
import Dispatch
import Glibc
import NetOptCore
import NetOptLocking

/// An isolated network: a thread in a new network namespace (network_namespaces(7)), which runs closures for
/// its owner. Threads and programs that a closure starts, and sockets that it opens, belong to the namespace
/// as well. The namespace disappears when nothing is left in it. Making a namespace requires root.
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

  /// The closures for the thread to run.
  private let work = Pipeline()
  /// The thread in the namespace.
  private let thread: JoinableThread
  /// The network of the thread that made this object, as a descriptor for setns(2).
  private let original: Int32
  /// The name of the namespace, as /proc shows it; empty if there is no namespace.
  private let name: String

  /// Makes a namespace with its loopback interface up.
  ///
  /// - Throws: `TestSupportError` when the system does not permit a namespace.
  package init() throws {
    let started = Pipeline.Answer<(code: Int32, name: String)>()
    let work = work
    original = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)
    thread = try JoinableThread {
      // The errno of the attempt, or 0.
      let code = unshareNetwork() == 0 ? 0 : errno
      started.give((code, code == 0 ? Self.network(of: "thread-self") ?? "" : ""))
      if code == 0 { work.run() }
    }
    let (code, name) = started.take()
    self.name = name
    guard code == 0 else {
      thread.join()
      throw systemError("no network namespace could be made", code: code)
    }
    try run { try Self.command("ip", ["link", "set", "lo", "up"]) }
  }

  deinit {
    end()
    close(original)
  }

  /// Moves the calling thread into a new namespace permanently. Threads and programs that the thread starts
  /// later are in the namespace as well. The loopback interface is down.
  ///
  /// - Throws: `TestSupportError` when the system does not permit a namespace.
  package static func enterNew() throws {
    guard unshareNetwork() == 0 else { throw systemError("no network namespace could be made") }
  }

  /// Ends the thread after it has run all submitted closures, and takes the threads of libdispatch out of the
  /// namespace. libdispatch starts a thread when there is work and all its threads are busy. If a thread in
  /// the namespace gives it the work, for example the event loop of a client, the new thread begins there too
  /// and would later run other tests. The caller's own thread can be one of these.
  package func end() {
    work.close()
    thread.join()
    Self.leave(name, for: original)
    let clock = SystemTimeSource()
    let deadline = clock.now() + .seconds(20)
    while hasThreads {
      precondition(
        clock.now() < deadline, "a thread that libdispatch does not own is in a namespace that ends")
      for qualityOfService in [DispatchQoS.QoSClass.background, .utility, .default, .userInitiated] {
        for _ in 0..<8 {
          DispatchQueue.global(qos: qualityOfService).async { [name, original] in
            Self.leave(name, for: original)
            // While this thread waits, another one takes the next block.
            usleep(1000)
          }
        }
      }
      usleep(5000)
    }
  }

  /// Takes the calling thread out of a namespace, if it is there.
  ///
  /// - Parameter original: the descriptor of the network that the thread moves to.
  private static func leave(_ name: String, for original: Int32) {
    if network(of: "thread-self") == name { setNetwork(original) }
  }

  /// Whether a thread of this process is in the namespace. Always true before `end`.
  package var hasThreads: Bool {
    guard let directory = opendir("/proc/self/task") else { return false }
    defer { closedir(directory) }
    while let entry = readdir(directory) {
      let id = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if Self.network(of: "self/task/\(id)") == name { return true }
    }
    return false
  }

  /// The name of the network namespace of a thread.
  ///
  /// - Parameter thread: its directory below /proc.
  private static func network(of thread: String) -> String? {
    var target = [CChar](repeating: 0, count: 100)
    let count = readlink("/proc/\(thread)/ns/net", &target, target.count)
    return count < 0
      ? nil : String(decoding: target.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
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

  /// Makes a network interface (veth(4)) and sets it up. Its other end is up too, but no program listens
  /// there.
  package func addLink(_ name: String) throws {
    try ip("link add \(name) type veth peer name \(name)-end")
    try ip("link set \(name)-end up")
    try ip("link set \(name) up")
  }

  /// Runs a program and waits for its end. Throws `TestSupportError` unless its exit status is 0.
  private static func command(_ program: String, _ arguments: [String]) throws {
    let id = try Spawn.start(try Spawn.find(program), arguments)
    var status: Int32 = 0
    while waitpid(id, &status, 0) < 0, errno == EINTR {}
    guard status == 0 else {
      throw TestSupportError("\(program) \(arguments.joined(separator: " ")) failed with \(status >> 8)")
    }
  }
}

/// Moves the calling thread into a new network namespace: calls unshare(2) with CLONE_NEWNET. sched.h
/// declares the function and the flag only with _GNU_SOURCE. So this code finds the function by its name, and
/// has the flag as a number.
///
/// - Returns: 0, or -1 with the reason in `errno`.
private func unshareNetwork() -> Int32 {
  typealias Unshare = @convention(c) (Int32) -> Int32
  guard let symbol = dlsym(nil, "unshare") else { return -1 }
  // This is the type of the C library's `unshare`.
  return unsafeBitCast(symbol, to: Unshare.self)(0x4000_0000)
}

/// Moves the calling thread into another network namespace: calls setns(2) with CLONE_NEWNET. Found like
/// `unshareNetwork`.
private func setNetwork(_ descriptor: Int32) {
  typealias SetNamespace = @convention(c) (Int32, Int32) -> Int32
  guard let symbol = dlsym(nil, "setns") else { return }
  // This is the type of the C library's `setns`.
  _ = unsafeBitCast(symbol, to: SetNamespace.self)(descriptor, 0x4000_0000)
}

/// A queue of closures. Any thread submits closures, and one thread runs them in order.
private final class Pipeline: Sendable {
  private struct State {
    var closures: [@Sendable () -> Void] = []
    /// Whether the queue takes no further closures.
    var isClosed = false
  }

  /// A value that one thread gives and another thread waits for.
  final class Answer<Value: Sendable>: Sendable {
    private let value = Locked<Value?>(nil)
    /// Signalled when the value has been given.
    private let isThere = DispatchSemaphore(value: 0)

    func give(_ value: Value) {
      self.value.withLock { $0 = value }
      isThere.signal()
    }

    /// Waits for the value and returns it.
    func take() -> Value {
      while true {
        isThere.wait()
        if let value = value.withLock({ $0 }) { return value }
      }
    }
  }

  private let state = Locked(State())
  /// Signalled when a closure was submitted, and when the queue was closed.
  private let hasNews = DispatchSemaphore(value: 0)

  /// Adds a closure. Returns false when the queue is closed; the closure does not run then.
  func submit(_ closure: @escaping @Sendable () -> Void) -> Bool {
    let isOpen = state.withLock { state in
      if !state.isClosed { state.closures.append(closure) }
      return !state.isClosed
    }
    hasNews.signal()
    return isOpen
  }

  /// Refuses further closures, and makes `run` return after the closures that were submitted before.
  func close() {
    state.withLock { $0.isClosed = true }
    hasNews.signal()
  }

  /// Runs the closures in order on the calling thread, until the queue is closed and empty.
  func run() {
    while true {
      let (closure, isOver) = state.withLock { state -> ((@Sendable () -> Void)?, Bool) in
        (state.closures.isEmpty ? nil : state.closures.removeFirst(), state.isClosed)
      }
      if let closure { closure() } else if isOver { return } else { hasNews.wait() }
    }
  }
}
