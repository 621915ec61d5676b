import Glibc
import NetOptCore

/// Reads lines from an input. It returns each line as soon as its line end has arrived, because the writer
/// of the lines may wait for the answer to one line before it writes the next line.
struct LineReader {
  private let input: any ByteInput
  /// The bytes that were read and not yet returned.
  private var buffer: [UInt8] = []
  /// How many bytes at the start of `buffer` are known to contain no line end. The next search begins after
  /// them, so that a long line, which arrives in many pieces, is searched only once.
  private var searched = 0
  /// Whether the input has ended.
  private var hasEnded = false
  private let limit: Int
  private let phase: NetOptError.Phase

  /// Creates a reader.
  ///
  /// - Parameters:
  ///   - limit: the maximum length of a line in bytes. The check is made before each read of 64 KiB, so a
  ///     line that ends in the next 64 KiB is accepted too.
  ///   - phase: the phase that the errors name: `send` for lines with requests to send, `sign` for lines with
  ///     requests to sign or to verify.
  init(_ input: any ByteInput, limit: Int, phase: NetOptError.Phase = .sign) {
    self.input = input
    self.limit = limit
    self.phase = phase
  }

  /// Returns the next line without its line end; `nil` at the end of the input. Skips lines that contain
  /// only spaces, tabs and carriage returns.
  ///
  /// - Throws: `unreadableFile` if the input cannot be read or a line is too long; `cancelled` if the task
  ///   was cancelled. After a line that is too long, no further line can be read.
  mutating func next() throws -> [UInt8]? {
    while true {
      if let end = buffer[searched...].firstIndex(of: 0x0a) {
        let line = Array(buffer[..<end])
        buffer.removeFirst(end + 1)
        searched = 0
        if line.contains(where: { $0 != 0x20 && $0 != 0x0d && $0 != 0x09 }) { return line }
        continue
      }
      searched = buffer.count
      if hasEnded {
        defer {
          buffer = []
          searched = 0
        }
        return buffer.isEmpty ? nil : buffer
      }
      guard buffer.count <= limit else {
        throw NetOptError(.unreadableFile, phase: phase, "a line has more than \(limit >> 20) MiB")
      }
      let piece = try read()
      if piece.isEmpty { hasEnded = true } else { buffer += piece }
    }
  }

  private func read() throws -> [UInt8] {
    do { return try input.read(upTo: 65_536) } catch InputError.refused(let number) {
      throw NetOptError(
        .unreadableFile, phase: phase, "cannot read standard input: \(String(cString: strerror(number)))")
    } catch {
      throw NetOptError(.cancelled, phase: phase, "reading standard input was interrupted")
    }
  }
}
