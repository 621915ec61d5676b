import NetOptTestSupport

/// Python programs that check what netopt makes, independently of netopt.
package enum Python {
  /// Runs a program that reads lines from standard input.
  ///
  /// - Parameters:
  ///   - program: the text of the program.
  ///   - lines: the lines, without line ends.
  /// - Returns: the lines that the program printed.
  /// - Throws: `TestSupportError` if the program has not ended after 60 s.
  package static func output(of program: String, on lines: [String]) async throws -> [String] {
    let directory = try TemporaryDirectory.make("python")
    try TextFile.write(program, to: directory + "/program.py")
    try TextFile.write(lines.map { $0 + "\n" }.joined(), to: directory + "/lines")
    let child = try ChildProcess(
      "/bin/sh", ["-c", "exec /usr/bin/python3 \"$0/program.py\" < \"$0/lines\"", directory], in: directory)
    try await wait(for: "Python to end", within: .seconds(60)) { child.exitStatus() != nil }
    return TextFile.read(child.output).split(separator: "\n").map(String.init)
  }
}
