import NetOptCaching
import NetOptCore

/// `netopt cache sim`: simulates the requests of a trace with several cache policies and capacities, and
/// prints their hit ratios.
struct CacheSimCommand: Command {
  private static let capacity = Option(
    "capacity", short: "c", takes: .required("SIZE"),
    "capacity of the cache in bytes, with k, M or G for KiB, MiB or GiB, or as a share of the total size of all keys, such as 0.1 or 10%; may be repeated; default: 1% and 10%"
  )
  private static let policy = Option(
    "policy", short: "p", takes: .required("NAME"),
    "policy: s3fifo (the memory tier), gdsf (the disk tier), lru or fifo; may be repeated; default: all")
  private static let keyColumn = Option(
    "key-column", takes: .required("N"), "column of the keys, 1 to 1000")
  private static let sizeColumn = Option(
    "size-column", takes: .required("N"), "column of the sizes, 1 to 1000")
  private static let ignoreSizes = Option("ignore-sizes", "count every response as 1 byte")

  /// The maximum size of a trace in bytes: 4 GiB.
  private static let limit = 4 << 30

  let declaration = CommandDeclaration(
    name: "cache sim",
    summary: "replay a log of requests and print the hit ratio of each cache policy",
    details: """
      Reads a trace and prints, for each policy and capacity, which share of the requests and of the bytes \
      the cache would have answered. Each line of the trace has a key, or a key and a size, separated by a \
      comma, a tab or spaces. The first line can name the columns, for example obj_id and size. Without \
      sizes, every response counts as 1 byte, so the capacity is a number of keys. - is standard input.

      The policies are those of the client, but the simulation ignores freshness, and with gdsf every \
      response has the same cost to fetch.
      """,
    operands: "TRACE", operandCount: 1...1,
    options: [
      OptionGroup("Cache", [capacity, policy]), OptionGroup("Trace", [keyColumn, sizeColumn, ignoreSizes]),
      OptionGroup("Output", [.json]),
    ],
    examples: [
      .init("netopt cache sim requests.csv", "compares the policies"),
      .init(
        "netopt cache sim -p s3fifo -c 64M requests.csv", "shows the hit ratio of a memory cache of 64 MiB"),
    ])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    let policies = try Self.policies(arguments)
    let sizes = arguments.values(of: Self.capacity)
    // Reports an invalid capacity before the command reads the trace, which may be large. The shares are
    // computed later, when the size of all keys is known.
    for size in sizes { _ = try Self.bytes(size, of: 1) }
    let keyColumn = try arguments.integer(Self.keyColumn, in: 1...1000)
    let sizeColumn = try arguments.integer(Self.sizeColumn, in: 1...1000)
    if sizeColumn != nil, keyColumn == nil { throw UsageError("--size-column needs --key-column") }
    let file = arguments.operands[0]
    let name = file == "-" ? "standard input" : file
    let text = try context.read(file, upTo: Self.limit, for: .cache)
    guard text.count <= Self.limit else {
      throw NetOptError(
        .unreadableFile, phase: .cache, "\(name) has more than \(Self.limit >> 30) GiB; split it")
    }
    let trace = try CacheTrace(
      text, file: name, columns: keyColumn.map { ($0, sizeColumn) },
      ignoresSizes: arguments.has(Self.ignoreSizes))
    var replays: [CacheReplay] = []
    for size in sizes.isEmpty ? ["1%", "10%"] : sizes {
      let capacity = try Self.bytes(size, of: trace.footprint)
      for policy in policies {
        try Task.checkCancellation()
        replays.append(CacheReplay(trace, policy, capacity: capacity))
      }
    }
    if arguments.has(.json) {
      try context.print(Self.json(trace, replays))
    } else {
      try context.output.write(Text.lines(Self.lines(trace, replays)))
    }
    return .ok
  }

  /// Returns the policies that the arguments name, each once; all policies if they name none.
  private static func policies(_ arguments: Arguments) throws(UsageError) -> [SimulatedPolicy] {
    let names = arguments.values(of: policy)
    var policies: [SimulatedPolicy] = []
    for name in names {
      guard let policy = SimulatedPolicy(rawValue: name) else {
        let known = SimulatedPolicy.allCases.map(\.rawValue).joined(separator: ", ")
        throw UsageError("--policy takes one of \(known), not \"\(name)\"")
      }
      if !policies.contains(policy) { policies.append(policy) }
    }
    return policies.isEmpty ? SimulatedPolicy.allCases : policies
  }

  /// Parses the value of `--capacity` and returns bytes.
  ///
  /// - Parameter footprint: `CacheTrace.footprint`, of which a value such as 10% is a share.
  private static func bytes(_ text: String, of footprint: Int) throws(UsageError) -> Int {
    let units: [Character: Int] = [
      "k": 1 << 10, "K": 1 << 10, "m": 1 << 20, "M": 1 << 20, "g": 1 << 30, "G": 1 << 30,
    ]
    let isPlain = text.utf8.allSatisfy { (0x30...0x39).contains($0) || [0x25, 0x2e].contains($0) }
    if isPlain, text.hasSuffix("%"), let share = Double(text.dropLast()), share > 0, share <= 100 {
      return part(share / 100, of: footprint)
    }
    if isPlain, text.contains("."), let share = Double(text), share > 0, share <= 1 {
      return part(share, of: footprint)
    }
    let unit = text.last.flatMap { units[$0] }
    if let count = Int(unit == nil ? text : String(text.dropLast())), count > 0 {
      let (bytes, overflow) = count.multipliedReportingOverflow(by: unit ?? 1)
      if !overflow { return bytes }
    }
    throw UsageError(
      "--capacity takes a number of bytes, as 1000 or 64M, or a share, as 0.1 or 10%, not \"\(text)\"")
  }

  /// Returns a share of a number of bytes, in bytes; at least 1.
  ///
  /// - Parameters:
  ///   - share: the share, from 0 to 1.
  ///   - footprint: `CacheTrace.footprint`.
  private static func part(_ share: Double, of footprint: Int) -> Int {
    let part = Double(footprint) * share
    // As a `Double`, a `footprint` near `Int.max` becomes 2^63, which does not fit into an `Int`.
    return part >= 0x1p63 ? footprint : max(Int(part), 1)
  }

  /// The object that `--json` prints: docs/schemas/cache-sim.schema.json.
  private static func json(_ trace: CacheTrace, _ replays: [CacheReplay]) -> JSONValue {
    [
      "schema_version": 1,
      "trace": [
        "requests": .integer(Int64(trace.requests.count)), "keys": .integer(Int64(trace.keyCount)),
        "bytes": .integer(Int64(trace.footprint)),
      ],
      "results": .array(
        replays.map { replay in
          [
            "policy": .string(replay.policy.rawValue), "capacity": .integer(Int64(replay.capacity)),
            "requests": .integer(Int64(replay.requests)), "hits": .integer(Int64(replay.hits)),
            "hit_ratio": .number(replay.hitRatio), "byte_hit_ratio": .number(replay.byteHitRatio),
          ]
        }),
    ]
  }

  /// The text that the command prints: a line about the trace, and a table with a row for each replay.
  private static func lines(_ trace: CacheTrace, _ replays: [CacheReplay]) -> [String] {
    func ratio(_ value: Double) -> String {
      let digits = String(Int(clamped: (value * 10_000).rounded()))
      let padded = String(repeating: "0", count: max(5 - digits.count, 0)) + digits
      return "\(padded.dropLast(4)).\(padded.suffix(4))"
    }
    var lines = [
      "\(Text.count(trace.requests.count, "request")), \(Text.count(trace.keyCount, "key")), \(trace.footprint) bytes",
      Text.left("policy", 8) + Text.right("capacity", 16) + Text.right("requests", 10)
        + Text.right("bytes", 10),
    ]
    for replay in replays {
      lines.append(
        Text.left(replay.policy.rawValue, 8) + Text.right(String(replay.capacity), 16)
          + Text.right(ratio(replay.hitRatio), 10) + Text.right(ratio(replay.byteHitRatio), 10))
    }
    return lines
  }
}
