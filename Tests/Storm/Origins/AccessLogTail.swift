import Glibc
import NetOptLocking

/// Reads a log file while it grows.
final class AccessLogTail: Sendable {
  private struct State {
    var descriptor: Int32?
    /// The beginning of a line whose end is not written yet.
    var rest: [UInt8] = []
    var size = 0
  }

  let path: String
  private let state = Locked(State())

  init(path: String) { self.path = path }

  deinit { state.withLock { _ = $0.descriptor.map { close($0) } } }

  /// The number of bytes read from the current file.
  var size: Int { state.withLock { $0.size } }

  /// The lines written since the last call.
  func lines() -> [String] {
    state.withLock { state in
      if state.descriptor == nil { Self.open(path, &state) }
      var lines: [String] = []
      while let chunk = Self.read(&state) {
        state.rest += chunk
        state.size += chunk.count
        let parts = state.rest.split(separator: 10, omittingEmptySubsequences: false)
        state.rest = parts.last.map { Array($0) } ?? []
        lines += parts.dropLast().map { String(decoding: $0, as: UTF8.self) }
      }
      return lines
    }
  }

  /// Removes the file, and continues with the new file once the writer has opened it. Lines that the writer
  /// adds to the old file after the next call of `lines` are lost.
  ///
  /// - Parameter reopen: makes the writer open the file again.
  func rotate(_ reopen: () -> Void) {
    unlink(path)
    reopen()
    // The old file exists as long as it is open here; its last lines are read before the lines of the new
    // file.
    state.withLock { state in
      for _ in 0..<1000 where access(path, F_OK) != 0 { usleep(1000) }
      let old = state.descriptor
      while let chunk = Self.read(&state) { state.rest += chunk }
      if let old { close(old) }
      state.descriptor = nil
      state.size = 0
    }
  }

  private static func open(_ path: String, _ state: inout State) {
    let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
    if descriptor >= 0 { state.descriptor = descriptor }
  }

  private static func read(_ state: inout State) -> [UInt8]? {
    guard let descriptor = state.descriptor else { return nil }
    let chunk = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, count in
      count = max(0, Glibc.read(descriptor, buffer.baseAddress, buffer.count))
    }
    return chunk.isEmpty ? nil : chunk
  }
}
