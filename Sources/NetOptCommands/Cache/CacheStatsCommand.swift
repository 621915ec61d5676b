import NetOptCaching
import NetOptCore

/// `netopt cache stats`: shows how much a disk cache holds.
struct CacheStatsCommand: Command {
  let declaration = CommandDeclaration(
    name: "cache stats",
    summary: "show how much a disk cache holds",
    details: """
      Prints how many entries a disk cache has, what they take, how often they were asked for, and how many of the last \
      thousand evictions were for want of room and for age. The cache may be in use.
      """,
    operands: "", operandCount: 0...0,
    options: [OptionGroup("Cache", [CacheOptions.directory]), OptionGroup("Output", [.json])],
    examples: [.init("netopt cache stats --cache /var/cache/app", "shows what is cached there")])

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
      "entries     \(usage.entries), of \(Text.count(usage.partitions, "partition"))",
      "bytes       \(usage.bytes)",
      "body files  \(usage.files)",
      "asked for   \(Text.count(usage.hits, "time"))",
      "evicted     \(usage.evictedForRoom) for want of room, \(usage.evictedForAge) for age",
    ]
    if let oldest = usage.oldest, let newest = usage.newest {
      lines.append("received    \(CacheOptions.date(oldest)) to \(CacheOptions.date(newest))")
    }
    try context.output.write(Text.lines(lines))
    return .ok
  }
}
