import Glibc
import NetOptCore

/// Reads lines from an input as they arrive. The writer of the lines may wait for the answer to one line
/// before it writes the next line.
struct LineReader {
  private let input: any ByteInput
  private var buffer: [UInt8] = []
  /// The number of bytes at the start of the buffer without a line end. A long line arrives in many pieces,
  /// and each search continues where the last search ended.
  private var searched = 0
  private var hasEnded = false
  private let limit: Int
  private let phase: NetOptError.Phase

  /// Creates a reader.
  ///
  /// - Parameters:
  ///   - limit: the maximum length of a line in bytes.
  ///   - phase: the phase for errors, which tells the purpose of the lines.
  init(_ input: any ByteInput, limit: Int, phase: NetOptError.Phase = .sign) {
    self.input = input
    self.limit = limit
    self.phase = phase
  }

  /// Returns the next line without its line end; `nil` at the end of the input. Skips lines that contain only
  /// spaces, tabs and carriage returns before the line end.
  ///
  /// - Throws: `NetOptError` when the input cannot be read, when the task is cancelled, and for a line that
  ///   is too long. The reader reads nothing after a line that is too long.
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
