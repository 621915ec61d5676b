import NetOptTestSupport
import Glibc
import NetOptCore
import NetOptLocking

/// A program that runs alongside the tests. `stop` ends the program. If the program still runs when this
/// object is deallocated, the object kills it. If the program still runs when the test process ends for any
/// reason, the `Watchdog` kills it.
package final class ChildProcess: Sendable {
  /// The process id.
  package let id: Int32
  /// The program's name or path, as the caller gave it.
  package let name: String
  /// The path of the file with the program's standard output and standard error.
  package let output: String

  /// The exit status in the form of waitpid(2); `nil` until `exitStatus` has seen the end of the program.
  private let status = Locked<Int32?>(nil)

  /// Starts a program.
  ///
  /// - Parameters:
  ///   - program: the path of the program, or its name, which is searched in `PATH` and the system's
  ///     directories.
  ///   - arguments: its arguments.
  ///   - directory: the directory for the file with its output.
  /// - Throws: `TestSupportError` when the program is not installed or cannot be started.
  package init(_ program: String, _ arguments: [String], in directory: String) throws {
    name = program
    output = "\(directory)/\(program.split(separator: "/").last ?? "program").output"
    let watchdog = try Watchdog.shared.get()
    let path = program.contains("/") ? program : try Spawn.find(program)
    id = try Spawn.start(path, arguments, output: output)
    watchdog.watch(id)
  }

  deinit { stop(with: SIGKILL) }

  /// Returns the exit status in the form of waitpid(2), or `nil` while the program runs.
  package func exitStatus() -> Int32? {
    status.withLock { status in
      if let status { return status }
      var information = siginfo_t()
      // With WNOWAIT, the ended child stays a zombie until the call of waitpid below, so the system does not
      // reuse its process id. Before that call, the watchdog must forget the id.
      let ended = waitid(P_PID, id_t(id), &information, WEXITED | WNOHANG | WNOWAIT) == 0
      // `si_signo` is SIGCHLD when the child has ended. waitid(2) fills in nothing while the child runs.
      guard ended, information.si_signo == SIGCHLD else { return nil }
      if case .success(let watchdog) = Watchdog.shared { watchdog.unwatch(id) }
      var reaped: Int32 = 0
      while waitpid(id, &reaped, 0) < 0, errno == EINTR {}
      status = reaped
      return reaped
    }
  }

  /// Sends a signal, unless the program has ended.
  package func send(_ signal: Int32) {
    guard exitStatus() == nil else { return }
    kill(id, signal)
  }

  /// Ends the program with SIGTERM. Kills the program when it does not end within 1 s. Returns after the
  /// program has ended.
  package func stop() { stop(with: SIGTERM) }

  /// Sends a signal, and waits for the end of the program. Kills the program when it does not end within 1 s.
  private func stop(with signal: Int32) {
    send(signal)
    let clock = SystemTimeSource()
    let patience = clock.now() + .seconds(1)
    var killed = signal == SIGKILL
    while exitStatus() == nil {
      if !killed, clock.now() > patience {
        send(SIGKILL)
        killed = true
      }
      usleep(500)
    }
  }

  /// Waits until the program is ready to serve.
  ///
  /// - Parameter ready: whether the program is ready. Evaluated repeatedly.
  /// - Throws: `TestSupportError` with the program's output when the program ends first or is not ready in
  ///   time.
  package func wait(untilReady ready: () -> Bool) async throws {
    let output = output
    do {
      try await NetOptTestSupport.wait(for: "\(name) to be ready") {
        if exitStatus() != nil { throw TestSupportError("\(name) ended") }
        return ready()
      }
    } catch let error as TestSupportError {
      throw TestSupportError("\(error): \(TextFile.read(output))")
    }
  }

  /// Runs a program until it ends.
  ///
  /// - Throws: `TestSupportError` with the program's output when the exit status is not 0.
  package static func run(_ program: String, _ arguments: [String], in directory: String) async throws {
    let child = try ChildProcess(program, arguments, in: directory)
    try await NetOptTestSupport.wait(for: "\(program) to end") { child.exitStatus() != nil }
    guard child.exitStatus() == 0 else {
      throw TestSupportError("\(program) failed: \(TextFile.read(child.output))")
    }
  }
}
