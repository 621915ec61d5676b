import NetOptCaching
import NetOptCore

/// `netopt cache clear`: removes all entries of a disk cache.
struct CacheClearCommand: Command {
  let declaration = CommandDeclaration(
    name: "cache clear",
    summary: "remove all entries of a disk cache",
    details: """
      Removes all entries of a disk cache and frees their disk space. Other processes can use the cache at \
      the same time. They keep the entries that they have in memory.
      """,
    operands: "", operandCount: 0...0,
    options: [OptionGroup("Cache", [CacheOptions.directory]), OptionGroup("Output", [.json])],
    examples: [.init("netopt cache clear --cache /var/cache/app", "empties the cache")])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    let removed = try CacheOptions.inspection(arguments).clear()
    if arguments.has(.json) {
      try context.print([
        "schema_version": 1, "removed": .integer(removed.entries), "bytes": .integer(removed.bytes),
      ])
    } else {
      let noun = removed.entries == 1 ? "entry" : "entries"
      try context.print("removed \(removed.entries) \(noun), \(removed.bytes) bytes")
    }
    return .ok
  }
}
