import NetOptTestSupport
import Glibc

/// Reads and writes the small files that the test kit exchanges with its programs.
package enum TextFile {
  /// Makes a file with this text, or replaces the content of an existing file. Only this user may read a new
  /// file.
  package static func write(_ text: String, to path: String) throws { try write(Array(text.utf8), to: path) }

  /// Makes a file with these bytes, or replaces the content of an existing file. Only this user may read a
  /// new file.
  package static func write(_ bytes: [UInt8], to path: String) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw systemError("\(path) could not be written") }
    defer { close(descriptor) }
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw systemError("\(path) could not be written") }
      rest = rest.dropFirst(count)
    }
  }

  /// The text of a file. Empty when the file cannot be opened.
  package static func read(_ path: String) -> String {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return "" }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = Glibc.read(descriptor, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
      bytes += buffer[..<count]
    }
  }
}
