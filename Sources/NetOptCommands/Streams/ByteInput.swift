import Glibc
import NetOptCore

/// Where a command reads from.
package protocol ByteInput: Sendable {
  /// Reads up to so many bytes; none at the end.
  func read(upTo count: Int) throws(InputError) -> [UInt8]
  /// Whether a person types it.
  var isTerminal: Bool { get }
  /// Does something while the terminal does not show what is typed.
  func withoutEcho<Result>(_ body: () throws(InputError) -> Result) throws(InputError) -> Result
}

extension ByteInput {
  /// No person types it.
  package var isTerminal: Bool { false }
  /// There is nothing that would show it.
  package func withoutEcho<Result>(_ body: () throws(InputError) -> Result) throws(InputError) -> Result {
    try body()
  }
}

/// Why nothing could be read.
package enum InputError: Error, Hashable, Sendable {
  /// The task was cancelled while nothing came.
  case cancelled
  /// The system refused, with this errno(3).
  case refused(Int32)
}

/// Input from a file descriptor. The descriptor stays open: whoever opened it closes it.
package struct DescriptorInput: ByteInput {
  private let descriptor: Int32

  /// Makes an input.
  package init(_ descriptor: Int32) { self.descriptor = descriptor }

  /// Whether the descriptor is a terminal's.
  package var isTerminal: Bool { isatty(descriptor) == 1 }

  /// Turns the terminal's echo off (termios(3)) and, whatever happens, on again.
  package func withoutEcho<Result>(_ body: () throws(InputError) -> Result) throws(InputError) -> Result {
    var before = termios()
    guard tcgetattr(descriptor, &before) == 0 else { return try body() }
    var silent = before
    silent.c_lflag &= ~tcflag_t(ECHO)
    tcsetattr(descriptor, TCSAFLUSH, &silent)
    defer { tcsetattr(descriptor, TCSAFLUSH, &before) }
    return try body()
  }

  /// Reads up to so many bytes. While nothing comes the task can be cancelled.
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
  /// Reads a file.
  ///
  /// - Parameter limit: as with `readAll`.
  static func readFile(_ path: String, upTo limit: Int) throws(InputError) -> [UInt8] {
    // Of a pipe that nobody writes to yet the opening would wait, and could not be cancelled (fifo(7)).
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { throw .refused(errno) }
    defer { close(descriptor) }
    return try DescriptorInput(descriptor).readAll(upTo: limit)
  }
}

extension ByteInput {
  /// Reads everything.
  ///
  /// - Parameter limit: the most bytes that are taken; one more is read, so that the caller sees that there are more.
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
