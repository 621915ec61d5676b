import FoundationEssentials
import NetOptCore

/// Files that tests read and write.
enum Files {
  /// The path of the program `netopt`. The build puts the program into the directory of the test executable,
  /// to which /proc/self/exe links.
  static var program: String {
    get throws {
      let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
      let directory = URL(fileURLWithPath: tests).deletingLastPathComponent()
      return directory.appendingPathComponent("netopt").path
    }
  }

  /// Returns the content of a file as text. A file of more than 16 MiB is cut off.
  static func read(_ path: String) throws -> String {
    String(decoding: try FileBytes.read(path, upTo: 16 << 20, as: "the test's", in: .list), as: UTF8.self)
  }

  /// Creates a file, or replaces its content.
  static func write(_ text: String, to path: String) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
  }

  /// The names of the files in a directory, sorted.
  static func names(in directory: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: directory).sorted()
  }
}
