import FoundationEssentials
import NetOptCore
import NetOptTestSupport

/// Compiles Swift code as another package would: the code sees only the public declarations of this package.
package enum OutsidePackage {
  /// Type-checks a source file that imports modules of this package. Does not link or run it.
  ///
  /// - Parameters:
  ///   - source: the text of the file.
  ///   - isScript: whether the file has statements at the top level, like a `main.swift`.
  ///   - modules: the source texts of further modules that the file may import, by module name.
  ///   - directory: an empty directory for the files.
  /// - Throws: `TestSupportError` with the output of the compiler when it finds an error or gives a warning.
  package static func check(
    _ source: String, isScript: Bool = false, beside modules: [String: String] = [:], in directory: String
  ) async throws {
    for (name, text) in modules {
      try Data(text.utf8).write(to: URL(filePath: "\(directory)/\(name).swift"))
      try await compile(
        [
          "-parse-as-library", "-emit-module", "-module-name", name, "-emit-module-path",
          "\(directory)/\(name).swiftmodule",
        ],
        "\(name).swift", in: directory)
    }
    try Data(source.utf8).write(to: URL(filePath: "\(directory)/main.swift"))
    try await compile(
      (isScript ? [] : ["-parse-as-library"]) + [
        "-typecheck", "-module-name", "outside", "-I", directory, "-I", try built + "/Modules",
      ] + (try maps),
      "main.swift", in: directory)
  }

  /// Compiles a program with statements at the top level, links it with this package's library and test kit,
  /// and runs it.
  ///
  /// - Parameters:
  ///   - source: the text of the program.
  ///   - directory: an empty directory for the files.
  /// - Returns: the output of the program.
  /// - Throws: `TestSupportError` with the output of the compiler, the linker or the program.
  package static func run(_ source: String, in directory: String) async throws -> String {
    try Data(source.utf8).write(to: URL(filePath: "\(directory)/main.swift"))
    let program = "\(directory)/outside"
    try await compile(
      ["-module-name", "outside", "-I", try built + "/Modules", "-o", program] + (try maps) + (try objects)
        + libraries.map { "-l\($0)" }, "main.swift", in: directory)
    let child = try ChildProcess(program, [], in: directory)
    try await NetOptTestSupport.wait(for: "the program to end") { child.exitStatus() != nil }
    let output = TextFile.read(child.output)
    guard child.exitStatus() == 0 else { throw TestSupportError("the program failed: \(output)") }
    return output
  }

  /// The modules of the product NetOpt and the test kit.
  private static let modules = [
    "NetOpt", "NetOptCore", "NetOptLocking", "NetOptCaching", "NetOptCrypto", "NetOptEngine", "NetOptRouting",
    "NetOptSQLite", "NetOptSigning", "NetOptTestSupport",
  ]
  /// The system's libraries that the modules need, as names for the linker's option `-l`.
  private static let libraries = [
    "curl", "cares", "ssl", "crypto", "sqlite3", "z", "brotlidec", "zstd", "nghttp2",
  ]

  /// The object files of `modules` and of the C module, one for each source file that exists. The list comes
  /// from the sources, because the build directory may also contain object files of deleted sources.
  private static var objects: [String] {
    get throws {
      let files = FileManager.default
      return try (modules + ["CFrameObserver"]).flatMap { module in
        try files.subpathsOfDirectory(atPath: RepositoryFile.path("Sources/\(module)"))
          .filter { $0.hasSuffix(".swift") || $0.hasSuffix(".c") }
          .map { "\(try built)/\(module).build/\($0.split(separator: "/").last ?? "").o" }
      }
    }
  }

  /// Runs the Swift compiler on a file in the directory. A warning counts as an error.
  private static func compile(_ options: [String], _ file: String, in directory: String) async throws {
    let language = ["-swift-version", "6", "-warnings-as-errors"]
    try await ChildProcess.run("swiftc", options + language + ["\(directory)/\(file)"], in: directory)
  }

  /// The directory into which SwiftPM built the running test program and the modules.
  private static var built: String {
    get throws {
      FileBytes.folder(of: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
    }
  }

  /// The compiler options for the module maps of the C modules. The compiler needs these maps although the
  /// program does not import the C modules.
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
