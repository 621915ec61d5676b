import NetOptCaching
import NetOptCore

/// `netopt cache stats`: prints the number of entries of a disk cache, their size, the number of requests for
/// them and the number of evictions.
struct CacheStatsCommand: Command {
  let declaration = CommandDeclaration(
    name: "cache stats",
    summary: "show the size and the use of a disk cache",
    details: """
      Prints the number of entries of a disk cache, their size, the number of requests for them, and how \
      many of the last 1,000 evictions were for lack of space and for age. Other processes can use the cache \
      at the same time.
      """,
    operands: "", operandCount: 0...0,
    options: [OptionGroup("Cache", [CacheOptions.directory]), OptionGroup("Output", [.json])],
    examples: [.init("netopt cache stats --cache /var/cache/app", "shows the size and the use of the cache")])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    let usage = try CacheOptions.inspection(arguments).usage()
    if arguments.has(.json) {
      try context.print([
        "schema_version": 1, "entries": .integer(usage.entries), "bytes": .integer(usage.bytes),
        "body_files": .integer(usage.files), "partitions": .integer(usage.partitions),
        "hits": .integer(usage.hits),
        "oldest": .optional(usage.oldest.map(CacheOptions.date)),
        "newest": .optional(usage.newest.map(CacheOptions.date)),
        "evicted": ["room": .integer(usage.evictedForRoom), "age": .integer(usage.evictedForAge)],
      ])
      return .ok
    }
    var lines = [
      "entries     \(usage.entries), in \(Text.count(usage.partitions, "partition"))",
      "bytes       \(usage.bytes)",
      "body files  \(usage.files)",
      "requested   \(Text.count(usage.hits, "time"))",
      "evicted     \(usage.evictedForRoom) for lack of space, \(usage.evictedForAge) for age",
    ]
    if let oldest = usage.oldest, let newest = usage.newest {
      lines.append("received    \(CacheOptions.date(oldest)) to \(CacheOptions.date(newest))")
    }
    try context.output.write(Text.lines(lines))
    return .ok
  }
}
