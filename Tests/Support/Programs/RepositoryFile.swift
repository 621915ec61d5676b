import NetOptTestSupport
package import NetOptCore

/// The files of this repository, for its tests.
package enum RepositoryFile {
  /// The absolute path of a file.
  ///
  /// - Parameter relative: the path from the root of the repository.
  package static func path(_ relative: String) -> String { root + "/" + relative }

  /// The root of the repository: the path of this file without its last four components (Tests, Support,
  /// folder, file).
  private static let root = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(4)
    .joined(separator: "/")

  /// The bytes of a file, whose path is relative to the root of the repository.
  ///
  /// - Throws: `NetOptError.Code.unreadableFile`.
  package static func bytes(_ relative: String) throws(NetOptError) -> [UInt8] {
    try FileBytes.read(path(relative), upTo: 16 << 20, as: "the repository's", in: .list)
  }

  /// The text of a file, whose path is relative to the root of the repository.
  package static func text(_ relative: String) throws(NetOptError) -> String {
    String(decoding: try bytes(relative), as: UTF8.self)
  }
}
