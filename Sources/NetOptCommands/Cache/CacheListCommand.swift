import NetOptCaching
import NetOptCore

/// `netopt cache list`: lists the entries of a disk cache.
struct CacheListCommand: Command {
  private static let limit = Option(
    "limit", short: "n", takes: .required("N"), "print at most N entries, 1 to 1000000; default: 100")

  let declaration = CommandDeclaration(
    name: "cache list",
    summary: "list the entries of a disk cache",
    details: """
      Prints the entries of a disk cache, the most requested first. For each entry it prints the status, the \
      size of the body in bytes, the number of requests for the entry, the time of the response, and the \
      cache key. It does not print bodies, header fields, or values of parameters with names of secrets. It \
      prints only the beginning of a hash of the partition.
      """,
    operands: "", operandCount: 0...0,
    options: [OptionGroup("Cache", [CacheOptions.directory, limit]), OptionGroup("Output", [.json])],
    examples: [
      .init("netopt cache list --cache /var/cache/app -n 10", "shows the 10 most requested entries")
    ])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    let limit = try arguments.integer(Self.limit, in: 1...1_000_000) ?? 100
    let items = try CacheOptions.inspection(arguments).items(upTo: limit)
    if arguments.has(.json) {
      try context.print(["schema_version": 1, "entries": .array(items.map(Self.json))])
    } else {
      try context.output.write(Text.lines(items.map { Text.printable(Self.text($0)) }))
    }
    return .ok
  }

  private static func json(_ item: DiskInspection.Item) -> JSONValue {
    [
      "api": .string(item.api), "parameters": .string(item.parameters),
      "partition": .optional(item.partition),
      "varies": .array(item.varies.map(JSONValue.string)), "status": .optional(item.status),
      "body_bytes": .integer(item.bodyBytes), "bytes": .integer(item.bytes), "hits": .integer(item.hits),
      "received": .string(CacheOptions.date(item.received)), "fetch_us": .integer(item.fetchMicroseconds),
      "resource_version": .optional(item.resourceVersion),
    ]
  }

  private static func text(_ item: DiskInspection.Item) -> String {
    let status = item.status.map(String.init) ?? "?"
    var parts = [
      Text.right(status, 3), Text.right(String(item.bodyBytes), 10), Text.right("\(item.hits)x", 7),
      CacheOptions.date(item.received), item.api + (item.parameters.isEmpty ? "" : " " + item.parameters),
    ]
    if let partition = item.partition { parts.append("partition \(partition)") }
    if !item.varies.isEmpty { parts.append("varies by \(item.varies.joined(separator: ", "))") }
    return parts.joined(separator: "  ")
  }
}
