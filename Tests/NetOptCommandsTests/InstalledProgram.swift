import FoundationEssentials
import NetOptTestSupport
import TestTools
import Testing

/// The program `netopt` that the build made (`Files.program`), and a directory for its files. Each run is a
/// child process.
struct InstalledProgram {
  /// A temporary directory, in which the program runs. `run` also returns the content of the files here whose
  /// names begin with "run.".
  let directory: String

  init() throws { directory = try TemporaryDirectory.make("installed") }

  /// Runs the program in `directory`.
  ///
  /// - Parameters:
  ///   - arguments: the command and its arguments.
  ///   - environment: variables to set, as NAME=VALUE. The program inherits the other variables of the test
  ///     process, except `http_proxy`, `https_proxy`, `all_proxy` and `ALL_PROXY`.
  ///   - lines: the program's standard input, which is also the content of the file "lines".
  /// - Returns: the exit status in the form of waitpid(2), and everything that the program printed and wrote
  ///   to files whose names begin with "run.".
  func run(
    _ arguments: [String], _ environment: [String] = [], lines: String = ""
  ) async throws -> (status: Int32, output: String) {
    try Files.write(lines, to: "\(directory)/lines")
    let shell =
      #"cd "$1"; rm -f run.*; shift; exec env -u http_proxy -u https_proxy -u all_proxy -u ALL_PROXY "$@" < lines"#
    // Removes the output of the previous run, because the child process appends to this file.
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
