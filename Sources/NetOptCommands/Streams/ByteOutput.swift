import Glibc
import NetOptCore

/// A destination for the bytes that a command writes, such as standard output.
package protocol ByteOutput: Sendable {
  /// Writes all bytes before it returns.
  func write(_ bytes: [UInt8]) throws(OutputError)
  /// Whether the output is a terminal.
  var isTerminal: Bool { get }
  /// The width of the terminal in characters; `nil` when the output is not a terminal, or the width is
  /// unknown.
  var columns: Int? { get }
}

extension ByteOutput {
  /// Writes a text.
  func write(_ text: String) throws(OutputError) { try write(Array(text.utf8)) }
}

/// The reason for a failed write.
package struct OutputError: Error, Hashable, CustomStringConvertible {
  /// The kinds of failure.
  enum Kind: Hashable, Sendable {
    /// The reader of the pipe is gone.
    case closed
    /// The task was cancelled while it waited for the reader.
    case cancelled
    /// A system call failed with this errno(3).
    case refused(Int32)
  }

  /// The kind of failure.
  let kind: Kind
  /// The name of the output: `standard output`, or the name of a file.
  let target: String

  /// What failed, and for some failures what to do about it.
  package var description: String {
    switch kind {
    case .closed: "the reader of \(FileBytes.shown(target)) closed it"
    case .cancelled: "writing to \(FileBytes.shown(target)) was interrupted"
    case .refused(let number):
      "cannot write to \(FileBytes.shown(target)): \(String(cString: strerror(number)))"
        + (Self.advice[number] ?? "")
    }
  }

  /// What to do about a failure, by errno(3). Appended to the message.
  private static let advice: [Int32: String] = [
    ENOSPC: "; free some space or write elsewhere",
    EDQUOT: "; free some space or write elsewhere",
    EFBIG: "; the file system or a limit (ulimit -f) does not allow a larger file",
    EACCES: "; choose a location that you can write to",
    EROFS: "; choose a location that you can write to",
    ENOENT: "; create the directory first",
    EISDIR: "; give the name of a file in the directory",
  ]
}

/// Output to a file descriptor. The descriptor stays open; its owner closes it.
package struct DescriptorOutput: ByteOutput {
  private let descriptor: Int32
  private let target: String
  /// The maximum number of bytes of one write(2).
  private let pieceSize: Int
  private let ignoresCancellation: Bool

  /// Creates an output.
  ///
  /// - Parameters:
  ///   - target: the name of the output in messages.
  ///   - ignoresCancellation: whether a write waits for the reader of a full pipe even after the task was
  ///     cancelled. Default: false.
  package init(_ descriptor: Int32, target: String, ignoresCancellation: Bool = false) {
    self.ignoresCancellation = ignoresCancellation
    self.descriptor = descriptor
    self.target = target
    var status = stat()
    let isFile = fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    // A pipe that poll(2) reports as writable accepts PIPE_BUF bytes without blocking, but possibly no more
    // (pipe(7)).
    pieceSize = isFile ? .max : Int(PIPE_BUF)
  }

  /// Whether the descriptor is a terminal.
  package var isTerminal: Bool { isatty(descriptor) == 1 }

  /// The width of the terminal in characters; `nil` if the descriptor is not a terminal, or the width is
  /// unknown.
  package var columns: Int? {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return Int(size.ws_col)
  }

  /// Writes all bytes. While a pipe is full, checks every 100 ms whether the task was cancelled, and then
  /// fails with `cancelled`. An output created with `ignoresCancellation` makes no such check.
  package func write(_ bytes: [UInt8]) throws(OutputError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      try waitUntilWritable()
      let piece = rest.prefix(pieceSize)
      let count = piece.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count >= 0 {
        rest = rest.dropFirst(count)
      } else if errno == EPIPE {
        throw OutputError(kind: .closed, target: target)
      } else if errno != EINTR, errno != EAGAIN {
        throw OutputError(kind: .refused(errno), target: target)
      }
    }
  }

  private func waitUntilWritable() throws(OutputError) {
    var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    while poll(&entry, 1, 100) == 0 {
      if !ignoresCancellation, Task.isCancelled { throw OutputError(kind: .cancelled, target: target) }
    }
  }
}
