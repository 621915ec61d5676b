import NetOptTestSupport
import Glibc

/// Makes directories that the `Watchdog` removes when the test process ends, also after a crash or SIGKILL.
package enum TemporaryDirectory {
  /// Makes an empty directory with a unique name.
  ///
  /// - Parameter label: the beginning of its name.
  /// - Returns: its absolute path.
  package static func make(_ label: String) throws -> String {
    try make(label, in: Watchdog.shared.get().directory)
  }

  /// Makes an empty directory in another directory. Its name begins with `label`.
  static func make(_ label: String, in parent: String) throws -> String {
    var template = Array("\(parent)/\(label).XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw systemError("no directory could be made in \(parent)") }
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// The directory for temporary files: `TMPDIR`, or otherwise `/tmp`.
  static var parent: String { getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp" }
}
