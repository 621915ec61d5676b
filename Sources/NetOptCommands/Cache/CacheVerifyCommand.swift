import NetOptCaching
import NetOptCore

/// `netopt cache verify`: checks that the bytes of a disk cache are still those that were stored.
struct CacheVerifyCommand: Command {
  let declaration = CommandDeclaration(
    name: "cache verify",
    summary: "read and check all entries of a disk cache",
    details: """
      Tells SQLite to check the database, reads every entry and its body, compares checksums and keys, and \
      finds body files that belong to no entry. The command changes nothing. A client removes a damaged \
      entry when a request needs it, and removes files without an entry when it opens the cache. The exit \
      code is 1 when the command finds a fault.
      """,
    operands: "", operandCount: 0...0,
    options: [OptionGroup("Cache", [CacheOptions.directory]), OptionGroup("Output", [.json])],
    examples: [.init("netopt cache verify --cache /var/cache/app", "checks the cache")])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    let result = try CacheOptions.inspection(arguments).verify()
    if arguments.has(.json) {
      try context.print([
        "schema_version": 1, "sound": .bool(result.isSound), "entries": .integer(Int64(result.entries)),
        "faults": .array(result.faults.map { ["api": .string($0.api), "reason": .string($0.reason)] }),
        "orphans": .integer(Int64(result.orphans)), "database": .array(result.database.map(JSONValue.string)),
      ])
    } else {
      var lines = result.faults.map { "\($0.api): \($0.reason)" }
      lines += result.database.map { "the database: \($0)" }
      if result.orphans > 0 { lines.append("\(Text.count(result.orphans, "file")) without an entry") }
      let checked = "checked \(result.entries) \(result.entries == 1 ? "entry" : "entries")"
      lines.append(result.isSound ? "\(checked): no faults" : checked)
      try context.output.write(Text.lines(lines.map(Text.printable)))
    }
    return result.isSound ? .ok : .failed
  }
}
