import Glibc

/// What a shell prints that popen(3) has begun, and that prints the number of its process first. The end of the shell is the end of the
/// output: a process that it leaves behind may keep the pipe open for as long as it likes.
struct CommandOutput {
  /// The most bytes of the first line: a number of ten digits.
  static let longestNumber = 11

  /// How many bytes came, the first line among them.
  private(set) var count = 0
  /// Where the second line begins, or 0 when the first has not come.
  private(set) var start = 0
  /// The shell, unless its number has not come.
  private(set) var shell: pid_t?
  /// Whether the shell has ended. It can be waited for still.
  private(set) var isEnded = false
  /// Whether it took too long.
  private(set) var isLate = false

  /// Reads until the shell has ended, the memory is full or the time has passed.
  mutating func read(
    _ descriptor: Int32, into memory: UnsafeMutableRawBufferPointer, within patience: Duration
  ) {
    let deadline = ContinuousClock.now + patience
    var isOpen = true
    while count < memory.count {
      // Without a pipe only the shell's end is waited for, which follows at once as a rule.
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

  private mutating func readNumber(_ bytes: UnsafeRawBufferPointer) {
    guard let end = bytes.firstIndex(of: 0x0a) else { return }
    start = end + 1
    shell = pid_t(String(decoding: bytes[..<end], as: UTF8.self))
  }

  /// Whether the shell has ended: waitid(2), which leaves it to be waited for. A shell without a number has ended with its pipe.
  private func hasEnded(_ isOpen: Bool) -> Bool {
    guard let shell else { return !isOpen }
    var information = siginfo_t()
    let code = waitid(P_PID, id_t(shell), &information, WEXITED | WNOHANG | WNOWAIT)
    // Who ignores SIGCHLD has no children to wait for.
    return code != 0 ? errno != EINTR : information.si_signo == SIGCHLD
  }
}
