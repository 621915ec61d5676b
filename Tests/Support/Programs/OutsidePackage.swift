import FoundationEssentials
import NetOptCore
import NetOptTestSupport

/// Compiles Swift as a program outside this package: it sees the public declarations and nothing else.
package enum OutsidePackage {
  /// Checks a source file that imports modules of this package.
  ///
  /// - Parameters:
  ///   - source: the text of the file.
  ///   - modules: the texts of other modules that it may import, by their names.
  ///   - directory: an empty directory for the files.
  /// - Throws: `TestSupportError` with what the compiler says.
  package static func check(
    _ source: String, beside modules: [String: String] = [:], in directory: String
  ) async throws {
    for (name, text) in modules {
      try Data(text.utf8).write(to: URL(filePath: "\(directory)/\(name).swift"))
      try await compile(
        ["-emit-module", "-module-name", name, "-emit-module-path", "\(directory)/\(name).swiftmodule"],
        "\(name).swift", in: directory)
    }
    try Data(source.utf8).write(to: URL(filePath: "\(directory)/main.swift"))
    try await compile(
      ["-typecheck", "-module-name", "outside", "-I", directory, "-I", try built + "/Modules"] + (try maps),
      "main.swift", in: directory)
  }

  private static func compile(_ options: [String], _ file: String, in directory: String) async throws {
    let language = ["-swift-version", "6", "-warnings-as-errors", "-parse-as-library"]
    try await ChildProcess.run("swiftc", options + language + ["\(directory)/\(file)"], in: directory)
  }

  /// Where the tests and the modules that they are made of were built.
  private static var built: String {
    get throws {
      FileBytes.folder(of: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
    }
  }

  /// The maps of the C modules, which the compiler has to know although the program does not import them.
  private static var maps: [String] {
    get throws {
      let files = FileManager.default
      let sources = RepositoryFile.path("Sources")
      let own = try files.contentsOfDirectory(atPath: sources).filter { $0.hasPrefix("C") }.map {
        "\(sources)/\($0)/module.modulemap"
      }
      let made = try files.contentsOfDirectory(atPath: built).filter {
        $0.hasPrefix("C") && $0.hasSuffix(".build")
      }
      .map { "\(try built)/\($0)/module.modulemap" }
      return (own + made).filter { files.fileExists(atPath: $0) }.flatMap {
        ["-Xcc", "-fmodule-map-file=\($0)"]
      }
    }
  }
}
