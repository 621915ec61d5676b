import Glibc

/// Reads files that people name.
package enum FileBytes {
  /// Reads a file, and no more of it than is of use: the path may lead to anything.
  ///
  /// - Parameters:
  ///   - path: the file.
  ///   - limit: the most bytes that are of use. Of a larger file one byte more is returned, for the one who checks.
  ///   - what: what the file is, for the error.
  ///   - phase: in which it is read.
  /// - Throws: `NetOptError.Code.unreadableFile`, naming the file and the system's reason.
  package static func read(
    _ path: String, upTo limit: Int, as what: String, in phase: NetOptError.Phase
  ) throws(NetOptError) -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure(.unreadableFile, path, what, phase, errno) }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 * 1024)
    while bytes.count <= limit {
      let count = Glibc.read(descriptor, &buffer, min(buffer.count, limit + 1 - bytes.count))
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw failure(.unreadableFile, path, what, phase, errno) }
      if count == 0 { break }
      bytes += buffer[..<count]
    }
    return bytes
  }

  /// The error of a file that cannot be read or written.
  static func failure(
    _ kind: NetOptError.Code, _ path: String, _ what: String, _ phase: NetOptError.Phase, _ code: Int32
  ) -> NetOptError {
    let reason = String(cString: strerror(code))
    let action = kind == .unreadableFile ? "read" : "written"
    return NetOptError(
      kind, phase: phase, "\(what) \(path) cannot be \(action): \(reason)",
      underlying: NetOptError.Underlying(.system, code: code, text: reason))
  }
}
