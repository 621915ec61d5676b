import Glibc
import NetOpt
import NetOptCaching
import NetOptCore
import NetOptLocking
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

/// Tests of `netopt cache explain` and of `netopt get` with a cache directory, on a loopback server.
@Suite struct CacheExplainCommandTests {
  /// The directory of the cache. It does not exist until a command or a test creates it.
  private let directory: String

  init() throws { directory = try TemporaryDirectory.make("explain") + "/cache" }

  /// Runs a command in this process, with a real client and the cache directory. The command must succeed.
  /// Returns its output.
  private func run(_ arguments: [String]) async throws -> String {
    let output = MemoryOutput()
    var context = CommandContext.process()
    context.environment = [:]
    context.output = output
    context.errors = MemoryOutput()
    let code = await Program.netopt.run(
      arguments + ["--no-direct", "--cache", directory], in: context, interruption: Interruption())
    #expect(code == .ok)
    return output.text
  }

  /// A server that answers with the body "hello" and these fields. To a request with the entity tag "a" in
  /// `If-None-Match`, it answers with 304 and these fields.
  private func server(_ fields: @escaping @Sendable () -> HeaderFields) throws -> LoopbackServer {
    try LoopbackServer(
      .raw { exchange in
        let isValid = exchange.request.fields["If-None-Match"] == "\"a\""
        try exchange.respond(isValid ? 304 : 200, fields(), text: isValid ? "" : "hello")
      })
  }

  @Test("cache explain states why a response is stored and why a fresh one is a hit, without secrets")
  func freshResponse() async throws {
    let server = try server { ["Cache-Control": "max-age=600"] }
    defer { server.stop() }
    let url = "http://\(server.endpoint)/thing?access_token=hunter2"
    let before = try await run(["cache", "explain", url])
    #expect(before.contains("STORED    nothing"))
    #expect(before.contains("DECISION  fetch: nothing is stored for the URL (RFC 9111, section 4)"))
    #expect(before.contains("ANSWER    stored: the response states how long it is fresh (RFC 9111"))
    // `cache explain` neither changed the cache nor created its directory.
    #expect(access(directory, F_OK) != 0)
    #expect(try await run(["cache", "explain", "--offline", url]).contains("STORED    nothing"))
    #expect(try await run(["get", url]) == "hello")
    let after = try await run(["cache", "explain", url])
    #expect(after.contains("STATE     fresh for"))
    #expect(
      after.contains("DECISION  hit: max-age sets how long the response is fresh (RFC 9111, section 5.2"))
    #expect(after.contains("Cache-Status: netopt; hit; ttl="))
    #expect(!after.contains("hunter2"))
    #expect(server.requests.count == 2)
    #expect(try await run(["get", "--json", url]).contains("\"cache\":\"hit\""))
    #expect(server.requests.count == 2)
  }

  @Test("cache explain reports a missing directory and does not create it")
  func missingDirectory() async throws {
    let run = await Run(
      ["cache", "explain", "--offline", "--cache", directory, "https://one.one.one.one/"])
    #expect(run.code == 0 && run.output.contains("STORED    nothing"))
    #expect(
      run.errors.contains("\(directory) cannot be opened")
        && run.errors.contains("netopt finds no entries there"))
    #expect(access(directory, F_OK) != 0)
  }

  @Test("cache explain states that a stale response is revalidated, and get revalidates it")
  func staleResponse() async throws {
    let server = try server { ["Cache-Control": "max-age=0", "ETag": "\"a\""] }
    defer { server.stop() }
    let url = "http://\(server.endpoint)/thing"
    _ = try await run(["get", url])
    let text = try await run(["cache", "explain", url])
    #expect(text.contains("STATE     stale since"))
    #expect(text.contains("DECISION  validate: the response is stale (RFC 9111, section 4.2)"))
    #expect(text.contains("OUTCOME   revalidated, status 200:"))
    #expect(text.contains("(RFC 9111, section 4.3.4)"))
    #expect(try await run(["get", "--json", url]).contains("\"cache\":\"revalidated\""))
  }

  @Test("cache explain states that the cache refuses a response with no-store")
  func refusedResponse() async throws {
    let server = try server { ["Cache-Control": "no-store"] }
    defer { server.stop() }
    let url = "http://\(server.endpoint)/thing"
    _ = try await run(["get", url])
    let text = try await run(["cache", "explain", url])
    #expect(text.contains("STORED    nothing"))
    #expect(text.contains("ANSWER    refused: the response has no-store (RFC 9111, section 5.2.2.5)"))
  }

  @Test("cache explain --offline states why the cache evicted a response")
  func evictedResponse() async throws {
    let store = DiskStore(directory, limits: CacheLimits(maxBytes: 100_000)) { _ in }
    let urls = try (0..<20).map { try HTTPURL("http://127.0.0.1:1/\($0)") }
    for url in urls {
      store.insert(
        CacheEntry(
          key: try RequestKey.url(url, partition: ""), status: 200, fields: ["Cache-Control": "max-age=600"],
          body: [UInt8](repeating: 0x78, count: 9000), requested: 1_795_219_200_000,
          received: 1_795_219_200_000,
          fetchMicroseconds: 1000))
    }
    let evicted = try #require(
      try urls.first { try store.eviction(of: RequestKey.url($0, partition: "")) != nil })
    store.close()
    let text = try await run(["cache", "explain", "--offline", evicted.description])
    #expect(text.contains("STORED    nothing"))
    #expect(text.contains("the cache was full, and this entry had the lowest value (netopt, disk tier)"))
    let json = try await run(["cache", "explain", "--offline", "--json", evicted.description])
    #expect(json.contains("\"evicted\":{\"rule\":\"the cache was full"))
  }

  @Test(
    "the JSON of cache explain and of a cached get matches its schemas",
    .enabled("\(JSONSchema.missing)") { try await JSONSchema.isInstalled() })
  func schemas() async throws {
    let server = try server { ["Cache-Control": "max-age=600", "Vary": "Accept"] }
    defer { server.stop() }
    let url = "http://\(server.endpoint)/thing"
    for arguments in [["--offline"], []] {
      let json = try await run(["cache", "explain", "--json", url] + arguments)
      #expect(try await JSONSchema.faults(of: json, by: "cache-explain") == "")
      _ = try await run(["get", url])
    }
    let get = try await run(["get", "--json", url])
    #expect(try await JSONSchema.faults(of: get, by: "get") == "")
  }
}
