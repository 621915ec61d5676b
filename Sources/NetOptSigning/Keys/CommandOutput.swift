import Glibc

/// Reads the output of a shell that popen(3) started and that prints its process id as its first line. The
/// output ends when the shell ends, even if the pipe is still open: a process that the shell leaves behind
/// may keep it open for any time.
struct CommandOutput {
  /// The maximum length of the first line in bytes: a process id of ten digits, and the line end.
  static let longestNumber = 11

  /// The number of bytes read, including the first line.
  private(set) var count = 0
  /// The offset of the second line, where the command's own output begins; 0 until the first line is
  /// complete.
  private(set) var start = 0
  /// The process id of the shell; `nil` until the first line is complete.
  private(set) var shell: pid_t?
  /// Whether the shell has ended. The caller must still collect its exit status: pclose(3).
  private(set) var isEnded = false
  /// Whether the shell was still running when the time limit of `read` had passed.
  private(set) var isLate = false

  /// Reads until the shell has ended, the memory is full or the time limit has passed.
  ///
  /// - Parameters:
  ///   - descriptor: the reading end of the pipe.
  ///   - memory: receives the output, the first line included.
  ///   - patience: the time limit.
  mutating func read(
    _ descriptor: Int32, into memory: UnsafeMutableRawBufferPointer, within patience: Duration
  ) {
    let deadline = ContinuousClock.now + patience
    var isOpen = true
    while count < memory.count {
      // After the pipe has closed, the loop only waits for the shell to end, which usually follows at once.
      var interest = pollfd(fd: isOpen ? descriptor : -1, events: Int16(POLLIN), revents: 0)
      let ready = poll(&interest, 1, isEnded ? 0 : isOpen ? 20 : 1)
      if ready > 0 {
        let read = Glibc.read(descriptor, memory.baseAddress.map { $0 + count }, memory.count - count)
        if read > 0 { count += read } else if read == 0 || errno != EINTR { isOpen = false }
        if start == 0 { readNumber(UnsafeRawBufferPointer(rebasing: memory[..<count])) }
      } else if isEnded, ready == 0 {
        return
      }
      if !isEnded, ready == 0 || !isOpen { isEnded = hasEnded(isOpen) }
      if isEnded, !isOpen { return }
      if ContinuousClock.now >= deadline {
        isLate = !isEnded
        return
      }
    }
  }

  /// Reads the process id from the first line when the line is complete.
  private mutating func readNumber(_ bytes: UnsafeRawBufferPointer) {
    guard let end = bytes.firstIndex(of: 0x0a) else { return }
    start = end + 1
    shell = pid_t(String(decoding: bytes[..<end], as: UTF8.self))
  }

  /// Whether the shell has ended. Asks waitid(2) with WNOWAIT, which leaves the exit status to pclose(3). If
  /// the process id is unknown, the end of the pipe counts as the end of the shell.
  ///
  /// - Parameter isOpen: whether the pipe is still open.
  private func hasEnded(_ isOpen: Bool) -> Bool {
    guard let shell else { return !isOpen }
    var information = siginfo_t()
    let code = waitid(P_PID, id_t(shell), &information, WEXITED | WNOHANG | WNOWAIT)
    // A process that ignores SIGCHLD has no children to wait for: the call then fails, which counts as the
    // end.
    return code != 0 ? errno != EINTR : information.si_signo == SIGCHLD
  }
}
