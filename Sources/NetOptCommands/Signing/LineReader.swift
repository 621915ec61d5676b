import Glibc
import NetOptCore

/// Reads lines from an input as they come: whoever writes them may wait for the answer to one before the next.
struct LineReader {
  private let input: any ByteInput
  private var buffer: [UInt8] = []
  /// How much of the buffer has no line end: a long line comes in many pieces, and is not looked through for each.
  private var searched = 0
  private var hasEnded = false
  private let limit: Int
  private let phase: NetOptError.Phase

  /// Makes a reader.
  ///
  /// - Parameters:
  ///   - limit: the most bytes of a line.
  ///   - phase: what the lines are read for.
  init(_ input: any ByteInput, limit: Int, phase: NetOptError.Phase = .sign) {
    self.input = input
    self.limit = limit
    self.phase = phase
  }

  /// The next line without its end that is not empty; `nil` when there is none.
  ///
  /// - Throws: `InputError`; `NetOptError` for a line that is too long, after which no other is read.
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
