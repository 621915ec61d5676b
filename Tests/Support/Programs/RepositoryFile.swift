import NetOptTestSupport
package import NetOptCore

/// Files of this repository, for its own tests.
package enum RepositoryFile {
  /// The path of a file, by its path from the root.
  package static func path(_ relative: String) -> String { root + "/" + relative }

  /// Found from this file's place: Sources, module, folder, file.
  private static let root = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(4)
    .joined(separator: "/")

  /// The bytes of a file.
  ///
  /// - Throws: `NetOptError.Code.unreadableFile`.
  package static func bytes(_ relative: String) throws(NetOptError) -> [UInt8] {
    try FileBytes.read(path(relative), upTo: 16 << 20, as: "the repository's", in: .list)
  }

  /// The text of a file.
  package static func text(_ relative: String) throws(NetOptError) -> String {
    String(decoding: try bytes(relative), as: UTF8.self)
  }
}
