import Glibc
import NetOptCore

/// A source of bytes that a command reads, such as standard input.
package protocol ByteInput: Sendable {
  /// Waits for bytes and reads up to `count` of them. Returns an empty array at the end of the input.
  func read(upTo count: Int) throws(InputError) -> [UInt8]
  /// Whether the input is a terminal.
  var isTerminal: Bool { get }
  /// Runs a closure. While it runs, the terminal does not show typed characters.
  func withoutEcho<Result>(_ body: () throws(InputError) -> Result) throws(InputError) -> Result
}

extension ByteInput {
  /// The default: the input is not a terminal.
  package var isTerminal: Bool { false }
  /// The default: only runs the closure, because the input is not a terminal.
  package func withoutEcho<Result>(_ body: () throws(InputError) -> Result) throws(InputError) -> Result {
    try body()
  }
}

/// The reason for a failed read.
package enum InputError: Error, Hashable, Sendable {
  /// The task was cancelled while it waited for input.
  case cancelled
  /// A system call failed with this errno(3).
  case refused(Int32)
}

/// Input from a file descriptor. The descriptor stays open; its owner closes it.
package struct DescriptorInput: ByteInput {
  private let descriptor: Int32

  /// Creates an input.
  package init(_ descriptor: Int32) { self.descriptor = descriptor }

  /// Whether the descriptor is a terminal.
  package var isTerminal: Bool { isatty(descriptor) == 1 }

  /// Turns off the terminal's echo (termios(3)), runs the closure, and restores the terminal's settings, even
  /// after an error.
  package func withoutEcho<Result>(_ body: () throws(InputError) -> Result) throws(InputError) -> Result {
    var before = termios()
    guard tcgetattr(descriptor, &before) == 0 else { return try body() }
    var silent = before
    silent.c_lflag &= ~tcflag_t(ECHO)
    tcsetattr(descriptor, TCSAFLUSH, &silent)
    defer { tcsetattr(descriptor, TCSAFLUSH, &before) }
    return try body()
  }

  /// Waits for bytes and reads up to `count` of them. Checks every 100 ms whether the task was cancelled.
  package func read(upTo count: Int) throws(InputError) -> [UInt8] {
    while true {
      var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      while poll(&entry, 1, 100) == 0 {
        if Task.isCancelled { throw .cancelled }
      }
      var error: Int32 = 0
      let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
        let got = Glibc.read(descriptor, buffer.baseAddress, count)
        filled = max(got, 0)
        error = got < 0 ? errno : 0
      }
      if error == 0 { return bytes }
      if error != EINTR, error != EAGAIN { throw .refused(error) }
    }
  }
}

extension DescriptorInput {
  /// Reads a whole file, as `readAll` does.
  ///
  /// - Parameter limit: the maximum number of useful bytes. For a longer file the function returns one byte
  ///   more.
  static func readFile(_ path: String, upTo limit: Int) throws(InputError) -> [UInt8] {
    // Without `O_NONBLOCK`, opening a pipe without a writer would wait, and cancelling the task could not end
    // the wait (fifo(7)).
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { throw .refused(errno) }
    defer { close(descriptor) }
    return try DescriptorInput(descriptor).readAll(upTo: limit)
  }
}

extension ByteInput {
  /// Reads the whole input.
  ///
  /// - Parameter limit: the maximum number of useful bytes. For a longer input the function returns one byte
  ///   more, so that the caller can detect that the input is too long.
  func readAll(upTo limit: Int) throws(InputError) -> [UInt8] {
    var whole: [UInt8] = []
    while whole.count <= limit {
      let piece = try read(upTo: min(65_536, limit + 1 - whole.count))
      if piece.isEmpty { break }
      whole += piece
    }
    return whole
  }
}
