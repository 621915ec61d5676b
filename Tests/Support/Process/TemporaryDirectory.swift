import NetOptTestSupport
import Glibc

/// Directories that are removed when the test process ends, in whatever way it does.
package enum TemporaryDirectory {
  /// Makes an empty directory that nobody else uses.
  ///
  /// - Parameter label: how its name begins.
  /// - Returns: its absolute path.
  package static func make(_ label: String) throws -> String {
    try make(label, in: Watchdog.shared.get().directory)
  }

  static func make(_ label: String, in parent: String) throws -> String {
    var template = Array("\(parent)/\(label).XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw systemError("no directory could be made in \(parent)") }
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Where the system wants temporary files.
  static var parent: String { getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp" }
}
