import Glibc
import NetOptCore

/// Where a command writes to.
package protocol ByteOutput: Sendable {
  /// Writes all of the bytes before it returns.
  func write(_ bytes: [UInt8]) throws(OutputError)
  /// Whether a person looks at it as it comes.
  var isTerminal: Bool { get }
  /// How many characters fit on a line of the terminal; `nil` when it is none, or does not tell.
  var columns: Int? { get }
}

extension ByteOutput {
  /// Writes a text.
  func write(_ text: String) throws(OutputError) { try write(Array(text.utf8)) }
}

/// Why output did not get where it should.
package struct OutputError: Error, Hashable, CustomStringConvertible {
  /// The kinds of failure.
  enum Kind: Hashable, Sendable {
    /// Nobody reads it any more: the reader of the pipe is gone.
    case closed
    /// The task was cancelled while nobody read.
    case cancelled
    /// The system refused, with this errno(3).
    case refused(Int32)
  }

  /// The kind of failure.
  let kind: Kind
  /// What was written to: `standard output`, a file's name.
  let target: String

  /// What failed, and what to do.
  package var description: String {
    switch kind {
    case .closed: "nobody reads \(FileBytes.shown(target)) any more"
    case .cancelled: "writing to \(FileBytes.shown(target)) was interrupted"
    case .refused(let number):
      "cannot write to \(FileBytes.shown(target)): \(String(cString: strerror(number)))"
        + (Self.advice[number] ?? "")
    }
  }

  private static let advice: [Int32: String] = [
    ENOSPC: "; free some space or write elsewhere",
    EDQUOT: "; free some space or write elsewhere",
    EFBIG: "; the file system or a limit (ulimit -f) allows no larger file",
    EACCES: "; choose a place that you may write to",
    EROFS: "; choose a place that you may write to",
    ENOENT: "; make the folder first",
    EISDIR: "; name a file in it",
  ]
}

/// Output to a file descriptor. The descriptor stays open: whoever opened it closes it.
package struct DescriptorOutput: ByteOutput {
  private let descriptor: Int32
  private let target: String
  private let pieceSize: Int
  private let isPatient: Bool

  /// Makes an output.
  ///
  /// - Parameters:
  ///   - target: what messages call it.
  ///   - isPatient: whether it waits for a reader although the task was cancelled.
  package init(_ descriptor: Int32, target: String, isPatient: Bool = false) {
    self.isPatient = isPatient
    self.descriptor = descriptor
    self.target = target
    var status = stat()
    let isFile = fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    // A pipe that is ready takes PIPE_BUF bytes without blocking, and perhaps no more (pipe(7)).
    pieceSize = isFile ? .max : Int(PIPE_BUF)
  }

  /// Whether the descriptor is a terminal's.
  package var isTerminal: Bool { isatty(descriptor) == 1 }

  /// The width of the terminal.
  package var columns: Int? {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return Int(size.ws_col)
  }

  /// Writes all of the bytes. While a pipe is full the task can be cancelled, unless the output is patient.
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
      if !isPatient, Task.isCancelled { throw OutputError(kind: .cancelled, target: target) }
    }
  }
}
