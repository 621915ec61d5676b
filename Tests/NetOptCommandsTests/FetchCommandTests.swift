import FoundationEssentials
import Glibc
import NetOpt
import NetOptCore
import NetOptLocking
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

/// Tests of `netopt fetch --jsonl`, with a scripted client and on a loopback server.
@Suite struct FetchCommandTests {
  /// A line that `fetch` writes: the response to a request, or an error.
  private struct Answer: Decodable {
    struct Fault: Decodable {
      let code: String
      let message: String
    }
    let id: Int?
    let status: Int?
    let reason: String?
    let headers: [[String]]?
    let body: String?
    let body_base64: String?
    let from_cache: Bool?
    let error: Fault?
  }

  /// Decodes the output of `fetch`, which has one answer per line.
  private func answers(_ output: String) throws -> [Answer] {
    try output.split(separator: "\n").map { try JSONDecoder().decode(Answer.self, from: Data($0.utf8)) }
  }

  /// Runs `netopt fetch` with a real client, which does not use the list. Returns the answers in the order in
  /// which `fetch` wrote them.
  ///
  /// - Parameter lines: the lines of standard input.
  private func fetch(_ lines: [String], _ options: [String] = []) async throws -> [Answer] {
    let output = MemoryOutput()
    var context = CommandContext.process()
    context.environment = [:]
    context.input = MemoryInput(lines.joined(separator: "\n"))
    context.output = output
    context.errors = MemoryOutput()
    let code = await Program.netopt.run(
      ["fetch", "--jsonl", "--no-direct"] + options, in: context, interruption: Interruption())
    #expect(code == .ok)
    return try answers(output.text)
  }

  /// A server that numbers its responses: without `body`, the body of the Nth response is "answer N".
  private static func server(_ fields: HeaderFields, body: [UInt8]? = nil) throws -> LoopbackServer {
    let count = Locked(0)
    return try LoopbackServer(
      .raw { exchange in
        _ = try exchange.readBody()
        let number = count.withLock { count in
          count += 1
          return count
        }
        try exchange.respond(200, fields, body: body ?? Array("answer \(number)".utf8))
      })
  }

  @Test(
    "fetch --metrics replaces a file with the metrics of its requests, and names a file that it cannot write")
  func metrics() async throws {
    let server = try Self.server([:])
    defer { server.stop() }
    let file = try TemporaryDirectory.make("metrics") + "/netopt.prom"
    try TextFile.write("old", to: file)
    let lines = (0..<3).map { "{\"id\":\($0),\"url\":\"http://\(server.endpoint)/\"}" }
    #expect(try await fetch(lines, ["--metrics", file]).count == 3)
    let text = TextFile.read(file)
    #expect(!text.contains("old"))
    #expect(
      text.contains(
        #"http_client_request_duration_seconds_count{http_request_method="GET",server_address="127.0.0.1""#))
    #expect(text.contains(#"http_response_status_code="200",network_protocol_version="1.1"} 3"#))
    try await ChildProcess.run(
      "sh", ["-c", "promtool check metrics < \(file)"], in: try TemporaryDirectory.make("promtool"))
    let run = await Run(
      ["fetch", "--jsonl", "--metrics", "/nonexistent/netopt.prom"], client: ScriptedClient(), input: "")
    #expect(run.code != 0 && run.errors.contains("/nonexistent/netopt.prom"))
  }

  @Test("fetch sends the request that a line describes, with its cache options and without retries")
  func requestFromLine() async throws {
    let client = ScriptedClient { (request) throws(NetOptError) in Samples.response(to: request) }
    let line = """
      {"id":"a","method":"POST","url":"https://api.example.com/x?y","headers":[["A","1"],["a","2"]],"body":"hé",\
      "redirect":"manual","cache":"http","partition":"p"}
      """
    let run = await Run(["fetch", "--jsonl"], client: client, input: line)
    #expect(run.code == 0)
    let request = try #require(client.requests.first)
    #expect(request.method == .post)
    #expect(request.url.description == "https://api.example.com/x?y")
    #expect(request.headers == ["A": "1", "a": "2"])
    guard case .bytes(Array("hé".utf8)) = request.body.source else {
      Issue.record("the body is another one")
      return
    }
    #expect(request.options.maxRedirects == 0)
    #expect(request.options.maxAttempts == 1)
    #expect(request.options.cache == NetOptCore.CacheOptions(.http, partition: "p"))
    #expect(client.isShutDown)
    #expect(run.configurations.first?.cache?.options == .off)
  }

  @Test(
    "fetch answers a line that is no request with an error and sends the other requests",
    arguments: [
      ("", "not a valid"), ("{}", "has no url"), ("[]", "must be an object"), ("{\"url\":5}", "$.url"),
      ("{\"url\":\"ftp://x/\"}", "not a usable URL"), ("{\"url\":\"http://x/\",\"foo\":1}", "not a member"),
      ("{\"url\":\"http://x/\",\"method\":\"A B\"}", "not a method"),
      ("{\"url\":\"http://x/\",\"headers\":[[\"a\"]]}", "a name and a value"),
      ("{\"url\":\"http://x/\",\"headers\":[[\"a\",\"b\\nc\"]]}", "line end"),
      ("{\"url\":\"http://x/\",\"cache\":\"on\"}", "http, api, off"),
      ("{\"url\":\"http://x/\",\"redirect\":\"no\"}", "follow, manual, error"), ("\u{1}", "not a valid"),
    ])
  func invalidLine(_ line: String, _ words: String) async throws {
    let client = ScriptedClient { (request) throws(NetOptError) in Samples.response(to: request) }
    let good = "{\"id\":2,\"url\":\"https://api.example.com/\"}"
    // `fetch` skips empty lines, so the text `nothing` stands for the empty argument.
    let input = (line.isEmpty ? "nothing" : line) + "\n\n" + good
    let run = await Run(["fetch", "--jsonl"], client: client, input: input)
    #expect(run.code == 0)
    let answers = try answers(run.output)
    #expect(answers.count == 2)
    let fault = try #require(answers.first { $0.error != nil }?.error)
    #expect(["invalid-request", "invalid-url"].contains(fault.code))
    #expect(fault.message.contains(words))
    #expect(answers.contains { $0.id == 2 && $0.status == 200 })
    #expect(client.requests.count == 1)
  }

  @Test("fetch without --jsonl is a usage error that names the option")
  func missingFormat() async throws {
    let run = await Run(["fetch"])
    #expect(run.code == 64)
    #expect(run.errors.contains("--jsonl"))
  }

  @Test("fetch returns the status, the header fields and a body that is not UTF-8 in base64")
  func binaryBody() async throws {
    let server = try Self.server(["Content-Type": "x", "X-Y": "1"], body: [0xff, 0xfe, 0x00])
    defer { server.stop() }
    let answer = try await fetch(["{\"id\":7,\"url\":\"http://\(server.endpoint)/\"}"])[0]
    #expect(answer.id == 7 && answer.status == 200 && answer.reason == "OK")
    #expect(answer.headers?.contains(["X-Y", "1"]) == true)
    #expect(answer.body == nil)
    #expect(answer.body_base64 == "//4A")
    #expect(answer.from_cache == false)
  }

  @Test("each partition has its own cache entries, and --cache-ttl enables caching in the mode api")
  func partitions() async throws {
    let server = try Self.server(["Cache-Control": "max-age=60"])
    defer { server.stop() }
    func line(_ id: Int, _ more: String) -> String {
      "{\"id\":\(id),\"url\":\"http://\(server.endpoint)/\",\(more)}"
    }
    let http = "\"cache\":\"http\",\"partition\""
    let lines = [
      line(1, "\(http):\"a\""), line(2, "\(http):\"a\""), line(3, "\(http):\"b\""),
      line(4, "\"cache\":\"off\""),
      line(5, "\"cache\":\"api\""), line(6, "\"cache\":\"api\""),
    ]
    // One request at a time, so that each finds the cache entries of the earlier ones.
    let answers = try await fetch(lines, ["--concurrency", "1"])
    #expect(answers.map(\.id) == [1, 2, 3, 4, 5, 6])
    #expect(
      answers.map(\.body) == ["answer 1", "answer 1", "answer 2", "answer 3", "answer 4", "answer 5"])
    #expect(answers.map(\.from_cache) == [false, true, false, false, false, false])
    let declared = try await fetch(
      [line(1, "\"cache\":\"api\""), line(2, "\"cache\":\"api\"")],
      ["--concurrency", "1", "--cache-ttl", "60"])
    #expect(declared.map(\.body) == ["answer 6", "answer 6"])
  }

  @Test("a cache directory serves later runs, but not another partition or the mode off")
  func cacheDirectory() async throws {
    let server = try Self.server(["Cache-Control": "max-age=60"])
    defer { server.stop() }
    let directory = try TemporaryDirectory.make("fetch") + "/cache"
    let line = "{\"id\":1,\"url\":\"http://\(server.endpoint)/\"}"
    for (index, isFromCache) in [false, true].enumerated() {
      let answer = try await fetch([line], ["--cache", directory])[0]
      #expect(answer.body == "answer 1" && answer.from_cache == isFromCache, "run \(index)")
    }
    let other = try await fetch(
      [line.replacing("}", with: ",\"partition\":\"p\"}")], ["--cache", directory])[0]
    #expect(other.body == "answer 2" && other.from_cache == false)
    let off = try await fetch([line], ["--cache", directory, "--cache-mode", "off"])[0]
    #expect(off.body == "answer 3" && off.from_cache == false)
    #expect(server.requests.count == 3)
  }

  /// `from_cache` is true for a stale response from the cache, and for a stored response that the origin
  /// confirmed with a 304.
  @Test("fetch marks stale and revalidated responses as from the cache")
  func staleAndRevalidated() async throws {
    let server = try LoopbackServer(
      .raw { exchange in
        let isStale = exchange.request.target == "/stale"
        let isValid = exchange.request.fields["If-None-Match"] != nil && !isStale
        try exchange.respond(
          isValid ? 304 : 200,
          [
            "Cache-Control": isStale ? "max-age=0, stale-while-revalidate=600" : "max-age=0", "ETag": "\"a\"",
          ],
          text: isValid ? "" : "hello")
      })
    defer { server.stop() }
    for target in ["stale", "validated"] {
      let line = "{\"id\":1,\"url\":\"http://\(server.endpoint)/\(target)\",\"cache\":\"http\"}"
      let answers = try await fetch([line, line], ["--concurrency", "1"])
      #expect(answers.map(\.from_cache) == [false, true], "\(target)")
      #expect(answers.map(\.body) == ["hello", "hello"])
      #expect(answers.map(\.status) == [200, 200])
    }
    #expect(server.requests.filter { $0.target == "/validated" }.count == 2)
  }

  @Test("fetch sends a fast request while an earlier one still waits for its response")
  func slowRequest() async throws {
    let isReleased = Locked(false)
    let server = try LoopbackServer(
      .raw { exchange in
        // The server answers /slow only after the request for /fast has arrived.
        if exchange.request.target == "/slow" {
          while !isReleased.withLock(\.self) { try exchange.wait(.milliseconds(1)) }
        } else {
          isReleased.withLock { $0 = true }
        }
        try exchange.respond(200, text: "x")
      })
    defer { server.stop() }
    let answers = try await fetch(
      ["slow", "fast"].enumerated().map { "{\"id\":\($0),\"url\":\"http://\(server.endpoint)/\($1)\"}" })
    #expect(Set(answers.map(\.id)) == [0, 1])
    #expect(answers.allSatisfy { $0.status == 200 })
  }

  @Test("fetch follows, returns or refuses a redirect as the line says")
  func redirects() async throws {
    let server = try LoopbackServer(
      .raw { exchange in
        if exchange.request.target == "/from" {
          try exchange.respond(302, ["Location": "/to"])
        } else {
          try exchange.respond(200, text: "there")
        }
      })
    defer { server.stop() }
    let lines = ["follow", "manual", "error"].enumerated().map {
      "{\"id\":\($0),\"url\":\"http://\(server.endpoint)/from\",\"redirect\":\"\($1)\"}"
    }
    let answers = try await fetch(lines, ["--concurrency", "1"])
    #expect(answers.map(\.status) == [200, 302, nil])
    #expect(answers[2].error?.code == "too-many-redirects")
  }

  @Test("fetch returns a 503 response without a retry")
  func noRetry() async throws {
    let server = try LoopbackServer(.raw { try $0.respond(503, text: "busy") })
    defer { server.stop() }
    let answers = try await fetch(["{\"id\":1,\"url\":\"http://\(server.endpoint)/\"}"])
    #expect(answers[0].status == 503 && answers[0].reason == "Service Unavailable")
    #expect(server.requests.count == 1)
  }

  @Test("fetch writes each response before it needs the next line")
  func responseBeforeNextLine() async throws {
    let server = try Self.server([:])
    defer { server.stop() }
    let directory = try TemporaryDirectory.make("fetch")
    for pipe in ["in", "out"] { try #require(mkfifo("\(directory)/\(pipe)", 0o600) == 0) }
    // The shell writes each line only after it has read the response to the line before.
    let line = "{\\\"id\\\":1,\\\"url\\\":\\\"http://\(server.endpoint)/\\\"}"
    let script = """
      "$0" fetch --jsonl --no-direct <'\(directory)/in' >'\(directory)/out' & exec 3>'\(directory)/in' 4<'\(directory)/out'
      for i in 1 2 3; do echo "\(line)" >&3; read -r answer <&4; echo "$answer"; done
      exec 3>&-; wait $!; echo "status $?"
      """
    let child = try ChildProcess("/bin/sh", ["-c", script, try Files.program], in: directory)
    try await wait(for: "the shell to end") { child.exitStatus() != nil }
    let lines = try Files.read(child.output).split(separator: "\n")
    #expect(lines.count == 4, "\(lines)")
    #expect(lines.last == "status 0")
    #expect(lines.dropLast().allSatisfy { $0.hasPrefix("{\"id\":1,\"status\":200,\"reason\":\"OK\"") })
  }

  @Test(
    "the JSON of responses and errors matches its schema",
    .enabled("\(JSONSchema.missing)") { try await JSONSchema.isInstalled() })
  func schema() async throws {
    let server = try Self.server(["A": "1"])
    defer { server.stop() }
    let output = MemoryOutput()
    for input in ["{\"id\":1,\"url\":\"http://\(server.endpoint)/\"}", "{\"id\":\"x\"}"] {
      var context = CommandContext.process()
      context.environment = [:]
      context.input = MemoryInput(input)
      context.output = output
      _ = await Program.netopt.run(
        ["fetch", "--jsonl", "--no-direct"], in: context, interruption: Interruption())
    }
    for line in output.text.split(separator: "\n") {
      #expect(try await JSONSchema.faults(of: String(line), by: "fetch-answer") == "")
    }
  }
}
