import NetOpt
import NetOptCore

/// `netopt fetch`: sends many requests through one client.
struct FetchCommand: Command {
  private static let jsonl = Option(
    "jsonl", "read requests and write answers as JSON Lines; docs/schemas has both")
  private static let concurrency = Option(
    "concurrency", takes: .required("N"),
    "how many requests are under way at once at most, 1 to 65536; default: 256")

  /// The maximum size of an input line and of a response body, in bytes.
  static let largest = 64 << 20

  let declaration = CommandDeclaration(
    name: "fetch",
    summary: "perform many requests, given and answered as JSON Lines",
    details: """
      Reads a request a line from standard input and writes an answer a line to standard output, all on one client: many \
      are under way at once, and answers come in the order in which they are there, each with its line's id. Whoever \
      writes the lines may wait for an answer before the next one.

      A line is {"id", "method", "url", "headers": [[name, value]], "body", "redirect": "follow" | "manual" | "error", \
      "cache": "http" | "api" | "off", "partition"}; only url is needed. An answer is {"id", "status", "reason", "headers", \
      "body" | "body_base64", "from_cache"}, or {"id", "error"} for a request that failed and a line that is none. Each \
      partition is a cache of its own.

      A request is sent once: 502, 503 and 504 are answers here, unless --retry says otherwise. The exit code is 0 when all \
      lines were answered, whatever the answers are.
      """,
    operands: "", operandCount: 0...0,
    options: [
      OptionGroup("Requests", [jsonl, concurrency, RequestArguments.maxRedirects, RequestArguments.retry]),
      CacheArguments.group, ClientOptions.routing, ClientOptions.connection,
    ],
    examples: [
      .init(
        "echo '{\"id\":1,\"url\":\"https://one.one.one.one/\"}' | netopt fetch --jsonl",
        "performs one request"),
      .init(
        "netopt fetch --jsonl --cache-mode http < requests.jsonl", "answers what it can from what came before"
      ),
    ])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    guard arguments.has(Self.jsonl) else {
      throw UsageError("fetch reads and writes JSON Lines alone; say --jsonl")
    }
    let caching = try CacheArguments(arguments)
    var options = try ClientOptions.requestOptions(arguments)
    // Every response is an answer, even 502, 503 and 504, so there are no retries. `--retry` can change this
    // below.
    options.maxAttempts = 1
    try RequestArguments.limits(arguments, &options)
    var configuration = try ClientOptions.configuration(arguments, in: context)
    configuration.cache = ClientConfiguration.Cache()
    // Each input line selects its own cache mode.
    configuration.cache?.options = .off
    configuration.cache?.directory = caching.directory
    configuration.cache?.heap = SystemHeap()
    let concurrency = try arguments.integer(Self.concurrency, in: 1...65_536) ?? 256
    let lines = try LineSource(context.input, limit: Self.largest)
    let output = LineOutput(context.output)
    try await context.withClient(configuration) { client in
      let fetches = Fetches(client: client, options: options, caching: caching, output: output)
      try await fetches.run(lines, atOnce: concurrency)
    }
    return .ok
  }
}

/// The requests of a run, and the output for their answers.
private struct Fetches: Sendable {
  let client: any Client
  let options: RequestOptions
  let caching: CacheArguments
  let output: LineOutput

  /// Answers all input lines.
  func run(_ lines: LineSource, atOnce limit: Int) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      var underWay = 0
      // An input error stops the reading, but the requests before the error complete.
      var fault: (any Error)?
      do {
        while let line = try await lines.next() {
          if underWay >= limit {
            try await group.next()
            underWay -= 1
          }
          group.addTask { try await output.write(await answer(line)) }
          underWay += 1
        }
      } catch {
        fault = error
      }
      try await group.waitForAll()
      if let fault { throw fault }
    }
  }

  private func answer(_ text: [UInt8]) async -> JSONValue {
    let line: FetchLine
    do throws(FetchLine.Fault) { line = try FetchLine(text) } catch {
      return FetchAnswer.line(error.id, error.error)
    }
    do throws(NetOptError) {
      let response = try await client.execute(line.request(options, caching))
      if line.redirect == .error, [301, 302, 303, 307, 308].contains(response.status) {
        throw NetOptError(
          .tooManyRedirects, phase: .receive,
          "\(line.url.brief) redirects, and the line says that this is an error"
        )
      }
      let body = try await response.body.collect(upTo: FetchCommand.largest)
      return FetchAnswer.line(line.id, response, body: body)
    } catch {
      return FetchAnswer.line(line.id, error)
    }
  }
}

/// Writes complete lines. It writes a long line in pieces, because the complete line would take several times
/// the memory of its body.
private actor LineOutput {
  private let output: any ByteOutput

  init(_ output: any ByteOutput) { self.output = output }

  func write(_ line: JSONValue) throws {
    try line.write { (piece) throws(OutputError) in try output.write(piece) }
    try output.write([0x0a])
  }
}
