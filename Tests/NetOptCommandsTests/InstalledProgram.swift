import FoundationEssentials
import NetOptTestSupport
import TestTools
import Testing

/// The program as it is installed, and a directory with what it writes.
struct InstalledProgram {
  /// Where its files are. All that it writes into files named "run." and something is looked at.
  let directory: String

  init() throws { directory = try TemporaryDirectory.make("installed") }

  /// Runs the program.
  ///
  /// - Parameters:
  ///   - environment: variables that are set, as NAME=VALUE. There is no proxy otherwise.
  ///   - lines: what it reads.
  /// - Returns: its exit status in the form of waitpid(2), and all that it printed and wrote.
  func run(
    _ arguments: [String], _ environment: [String] = [], lines: String = ""
  ) async throws -> (status: Int32, output: String) {
    try Files.write(lines, to: "\(directory)/lines")
    let shell =
      #"cd "$1"; rm -f run.*; shift; exec env -u http_proxy -u https_proxy -u all_proxy -u ALL_PROXY "$@" < lines"#
    // Output is appended to the file.
    try? FileManager.default.removeItem(atPath: "\(directory)/sh.output")
    let child = try ChildProcess(
      "/bin/sh", ["-c", shell, "sh", directory] + environment + [try Files.program] + arguments, in: directory
    )
    try await wait(for: "netopt to end", within: .seconds(60)) { child.exitStatus() != nil }
    var all = try Files.read(child.output)
    for name in try Files.names(in: directory) where name.hasPrefix("run.") {
      all += try Files.read("\(directory)/\(name)")
    }
    return (try #require(child.exitStatus()), all)
  }
}
