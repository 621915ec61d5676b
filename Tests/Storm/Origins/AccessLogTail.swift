import Glibc
import NetOptLocking

/// Reads the lines of a log file while another process writes it.
final class AccessLogTail: Sendable {
  private struct State {
    /// The descriptor of the current file; `nil` until it is opened, at the first call of `lines` and at the
    /// next one after `rotate`.
    var descriptor: Int32?
    /// The bytes that were read but are no whole line yet.
    var rest: [UInt8] = []
    /// The number of bytes read from the current file.
    var size = 0
  }

  /// The path of the log file.
  let path: String
  private let state = Locked(State())

  init(path: String) { self.path = path }

  deinit { state.withLock { _ = $0.descriptor.map { close($0) } } }

  /// The number of bytes read from the current file.
  var size: Int { state.withLock { $0.size } }

  /// The lines that were written since the last call. Opens the file if necessary.
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

  /// Removes the file. Waits until the writer has created a new file, at most 1 s, and reads the old file to
  /// its end. Lines that the writer adds to the old file later are lost.
  ///
  /// - Parameter reopen: makes the writer close the old file and open a new one at the path.
  func rotate(_ reopen: () -> Void) {
    unlink(path)
    reopen()
    // The old file exists as long as it is open here. So its last lines come before the lines of the new
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

  /// Opens the file if the writer has created it.
  private static func open(_ path: String, _ state: inout State) {
    let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
    if descriptor >= 0 { state.descriptor = descriptor }
  }

  /// Reads up to 64 KiB; `nil` when no more bytes are there.
  private static func read(_ state: inout State) -> [UInt8]? {
    guard let descriptor = state.descriptor else { return nil }
    let chunk = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, count in
      count = max(0, Glibc.read(descriptor, buffer.baseAddress, buffer.count))
    }
    return chunk.isEmpty ? nil : chunk
  }
}
