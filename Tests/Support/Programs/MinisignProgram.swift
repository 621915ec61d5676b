import NetOptTestSupport
import NetOptCore

/// Runs minisign(1), to check that netopt and minisign sign and verify alike.
package enum MinisignProgram {
  /// Runs minisign in a directory.
  ///
  /// - Parameters:
  ///   - arguments: its arguments; file names are relative to the directory.
  ///   - password: the password to type when minisign asks for one. It is in the input twice, because
  ///     minisign asks twice for the password of a new key.
  /// - Returns: whether minisign succeeded, and its output.
  package static func run(
    _ arguments: [String], in directory: String, password: String? = nil
  ) async throws -> (isFine: Bool, output: String) {
    let scratch = try TemporaryDirectory.make("minisign")
    if let password { try TextFile.write("\(password)\n\(password)\n", to: "\(scratch)/password") }
    let line = "cd \"$1\" && shift && exec \"$@\" <\(password == nil ? "/dev/null" : "\(scratch)/password")"
    let child = try ChildProcess(
      "/bin/sh", ["-c", line, "sh", directory, try Spawn.find("minisign")] + arguments, in: scratch)
    // The derivation of a key from a password takes seconds by design.
    try await wait(for: "minisign to end", within: .seconds(120)) { child.exitStatus() != nil }
    return (child.exitStatus() == 0, TextFile.read(child.output))
  }

  /// Makes an unencrypted key pair in a directory: `list.key` and `list.pub`.
  package static func makeKey(in directory: String) async throws {
    let (isFine, output) = try await run(
      ["-G", "-f", "-W", "-s", "list.key", "-p", "list.pub"], in: directory)
    guard isFine else { throw TestSupportError("minisign made no key: \(output)") }
  }
}
