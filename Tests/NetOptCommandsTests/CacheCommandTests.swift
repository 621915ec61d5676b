import FoundationEssentials
import Glibc
import NetOptCaching
import NetOptCore
import NetOptSQLite
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

@Suite struct CacheCommandTests {
  /// The directory of the cache. It does not exist until a store or a test creates it.
  let directory: String

  init() throws { directory = try TemporaryDirectory.make("cache-commands") + "/cache" }

  /// A text that stands for a secret. No output may contain it.
  private static let secret = "canary-7d1e"

  /// Stores the entries 0, 1 and 2. They contain the secret in each part that may be secret. Looks up each
  /// entry as many times as its number. The body of entry 2 is in a file.
  private func fill() throws {
    let store = DiskStore(directory) { Issue.record("\($0)") }
    for number in 0..<3 {
      let key = try CacheKey(
        api: "GET https://a.test/\(number)", parameters: "page=\(number)&access_token=\(Self.secret)",
        partition: number == 0 ? "" : "Bearer \(Self.secret)")
      let entry = CacheEntry(
        key: key, selectors: [.init(name: "authorization", value: Self.secret)], status: 200,
        fields: ["Set-Cookie": Self.secret], body: [UInt8](repeating: 1, count: number == 2 ? 150_000 : 10),
        requested: 0, received: 1_700_000_000_000 + Int64(number) * 1000, fetchMicroseconds: 5000)
      store.insert(entry)
      for _ in 0..<number { _ = store.entries(for: key) }
    }
    store.close()
  }

  @Test("cache stats counts entries, partitions, body files and uses, also with NETOPT_CACHE")
  func stats() async throws {
    try fill()
    let run = await Run(["cache", "stats", "--cache", directory])
    #expect(run.code == 0, "\(run.errors)")
    #expect(run.output.hasPrefix("entries     3, in 2 partitions\n"))
    // The count of an entry begins at 1 when it is stored. The look-ups add 0 + 1 + 2.
    #expect(run.output.contains("body files  1\n") && run.output.contains("requested   6 times\n"))
    #expect(run.output.contains("received    2023-11-14T22:13:20Z to 2023-11-14T22:13:22Z\n"))
    let named = await Run(["cache", "stats", "--json"], environment: ["NETOPT_CACHE": directory])
    #expect(named.output.hasPrefix(#"{"schema_version":1,"entries":3,"bytes":"#))
  }

  @Test("cache list shows the entries without secrets, the most used first")
  func listWithoutSecrets() async throws {
    try fill()
    let run = await Run(["cache", "list", "--cache", directory])
    #expect(run.code == 0, "\(run.errors)")
    let lines = run.output.split(separator: "\n")
    #expect(lines.count == 3)
    #expect(
      lines[0].hasPrefix(
        "200      150000       3x  2023-11-14T22:13:22Z  GET https://a.test/2 page=2&access_token=[hidden]  partition "
      ))
    #expect(lines[0].hasSuffix("  varies by authorization"))
    let json = await Run(["cache", "list", "--json", "-n", "2", "--cache", directory])
    #expect(!run.output.contains(Self.secret) && !json.output.contains(Self.secret))
    #expect(json.output.split(separator: #""api":"#).count == 3)
  }

  @Test("cache verify reports an entry with a wrong checksum and a file without an entry")
  func verify() async throws {
    try fill()
    let good = await Run(["cache", "verify", "--cache", directory])
    #expect(good.code == 0 && good.output == "checked 3 entries: no faults\n", "\(good.output)\(good.errors)")
    let database = try Database(directory + "/responses.db")
    try database.execute("UPDATE entries SET body = x'00' WHERE id = 1")
    try Data([1]).write(to: URL(fileURLWithPath: "\(directory)/bodies/\(String(repeating: "a", count: 32))"))
    let bad = await Run(["cache", "verify", "--cache", directory])
    #expect(bad.code == 1)
    #expect(
      bad.output
        == "GET https://a.test/0: its checksum is wrong\n1 file without an entry\nchecked 3 entries\n"
    )
  }

  @Test("cache clear removes all entries and reports their number")
  func clear() async throws {
    try fill()
    let run = await Run(["cache", "clear", "--cache", directory])
    #expect(run.code == 0 && run.output.hasPrefix("removed 3 entries, "), "\(run.errors)")
    let again = await Run(["cache", "clear", "--json", "--cache", directory])
    #expect(again.output == #"{"schema_version":1,"removed":0,"bytes":0}"# + "\n")
  }

  @Test(
    "a cache command without a usable cache directory fails and creates nothing",
    arguments: ["stats", "list", "verify", "clear"])
  func noCache(name: String)
    async throws
  {
    let missing = await Run(["cache", name, "--cache", directory])
    #expect(missing.code == 65 && missing.errors.contains(directory), "\(missing.errors)")
    #expect(access(directory, F_OK) != 0)
    mkdir(directory, 0o700)
    let empty = await Run(["cache", name, "--cache", directory])
    #expect(empty.code == 65 && empty.errors.contains("\(directory) has no cache"), "\(empty.errors)")
    try Data("no database at all, but a text".utf8).write(
      to: URL(fileURLWithPath: directory + "/responses.db"))
    let broken = await Run(["cache", name, "--cache", directory])
    #expect(broken.code == 65 && broken.errors.contains("file is not a database"), "\(broken.errors)")
    let none = await Run(["cache", name])
    #expect(none.code == 64 && none.errors.contains("--cache DIR is missing"))
  }

  @Test("cache sim does not trap on sizes that add up to more than 63 bits")
  func largeSizes() async throws {
    let large = Int64.max / 2 + 1
    let trace = "a,1\nb,5\na,\(large)\nb,\(large)\nb,\(large)\nb,\(large)\n"
    let run = await Run(["cache", "sim", "-p", "fifo", "-c", "10", "-"], input: trace)
    #expect(run.code == 0)
    #expect(run.output.contains("0.6667"))
    for policy in ["s3fifo", "lru", "gdsf"] {
      #expect(await Run(["cache", "sim", "-p", policy, "-c", "10", "-"], input: trace).code == 0)
    }
  }

  @Test func simReplaysATrace() async throws {
    let trace = "obj_id,time,size\n" + (0..<200).map { "k\($0 % 20),\($0),10\n" }.joined()
    let run = await Run(
      ["cache", "sim", "-p", "lru", "-p", "fifo", "-c", "200", "-c", "50%", "-"], input: trace)
    #expect(run.code == 0, "\(run.errors)")
    #expect(
      run.output
        == """
        200 requests, 20 keys, 200 bytes
        policy          capacity  requests     bytes
        lru                  200    0.9000    0.9000
        fifo                 200    0.9000    0.9000
        lru                  100    0.0000    0.0000
        fifo                 100    0.0000    0.0000

        """)
    let columns = await Run(
      ["cache", "sim", "--json", "-p", "lru", "-c", "1.0", "--key-column", "2", "-"], input: "1 a\n2 a\n3 b\n"
    )
    #expect(
      columns.output
        == #"{"schema_version":1,"trace":{"requests":3,"keys":2,"bytes":2},"results":[{"policy":"lru","#
        + #""capacity":2,"requests":3,"hits":1,"hit_ratio":0.3333333333333333,"byte_hit_ratio":0.3333333333333333}]}"#
        + "\n")
  }

  @Test(
    "cache sim reports a broken trace with the line and the reason",
    arguments: [
      ("", "standard input has no requests"), ("a,b\n", #"standard input, line 1: "b" is not a size"#),
      ("a 1\nb -1\n", #"line 2: "-1" is not a size"#),
      ("a,1,2\n", "line 1: it has 3 columns; name the column of the keys with --key-column"),
      ("a,9223372036854775807\nb,1\n", "line 2: the sum of the sizes is too large"),
      ("size,x\n1,2\n", "it names no column for the keys"),
    ])
  func brokenTrace(trace: String, reason: String) async {
    let run = await Run(["cache", "sim", "-"], input: trace)
    #expect(run.code == 65 && run.errors.contains(reason), "\(run.errors)")
  }

  @Test(
    "cache sim refuses invalid capacities, policies and columns",
    arguments: [
      ["-c", "0"], ["-c", "x"], ["-c", "1.5"], ["-c", "200%"], ["-c", "9999999999G"], ["-p", "arc"],
      ["--size-column", "2"],
    ])
  func usageErrors(options: [String]) async {
    let run = await Run(["cache", "sim"] + options + ["-"], input: "a\n")
    #expect(run.code == 64, "\(run.output)\(run.errors)")
  }

  @Test(
    "the JSON of the cache commands and a seed pack match their schemas",
    .enabled("\(JSONSchema.missing)") { try await JSONSchema.isInstalled() })
  func schemas() async throws {
    try fill()
    for name in ["stats", "list", "verify", "clear"] {
      let run = await Run(["cache", name, "--json", "--cache", directory])
      #expect(try await JSONSchema.faults(of: run.output, by: "cache-\(name)") == "", "\(run.output)")
    }
    let sim = await Run(["cache", "sim", "--json", "-"], input: "a 1\nb 2\n")
    #expect(try await JSONSchema.faults(of: sim.output, by: "cache-sim") == "", "\(sim.output)")
    let hash = String(repeating: "0", count: 64)
    let pack = #"{"schema":1,"issued":1,"resources":[{"key":"a","file":"x","sha256":"\#(hash)"}]}"#
    #expect(try await JSONSchema.faults(of: pack, by: "seed-pack") == "")
  }
}
