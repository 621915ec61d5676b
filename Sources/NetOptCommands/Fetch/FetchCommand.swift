import NetOpt
import NetOptCore

/// `netopt fetch`: reads requests as JSON Lines and sends all of them through one client.
struct FetchCommand: Command {
  private static let jsonl = Option(
    "jsonl", "read requests and write responses as JSON Lines; the schemas are in docs/schemas")
  private static let concurrency = Option(
    "concurrency", takes: .required("N"),
    "send at most N requests at the same time, 1 to 65536; default: 256")

  private static let metrics = Option(
    "metrics", takes: .required("FILE"),
    "write the client's metrics to FILE at the end, in Prometheus' text format")

  /// The maximum size of an input line and of a response body, in bytes.
  static let largest = 64 << 20

  let declaration = CommandDeclaration(
    name: "fetch",
    summary: "read many requests as JSON Lines, perform them, and write the responses as JSON Lines",
    details: """
      Reads one request per line from standard input and writes one response per line to standard output. \
      One client performs all requests, many at the same time. fetch writes each response as soon as it is \
      complete, with the id of its request line, so the order can differ from the order of the requests. A \
      program can wait for a response before it writes the next request.

      A request line is {"id", "method", "url", "headers": [[name, value]], "body", "redirect": "follow" | \
      "manual" | "error", "cache": "http" | "api" | "off", "partition"}. Only url is required. A response \
      line is {"id", "status", "reason", "headers", "body" | "body_base64", "from_cache"}. For a failed \
      request and for an invalid line it is {"id", "error"}. Each partition has a separate cache.

      fetch sends a request once, and 502, 503 and 504 are normal responses, unless --retry is given. The \
      exit code is 0 when every line has a response line, whatever the response lines contain.

      --metrics replaces FILE atomically at the end, so that it can be in the directory of node_exporter's \
      textfile collector, which reads files whose names end in .prom. A FILE that cannot be written is an \
      error before the first request.
      """,
    operands: "", operandCount: 0...0,
    options: [
      OptionGroup(
        "Requests", [jsonl, concurrency, metrics, RequestArguments.maxRedirects, RequestArguments.retry]),
      CacheArguments.group, ClientOptions.routing, ClientOptions.connection, TLSOptions.group,
    ],
    examples: [
      .init(
        "echo '{\"id\":1,\"url\":\"https://one.one.one.one/\"}' | netopt fetch --jsonl",
        "performs one request"),
      .init(
        "netopt fetch --jsonl --cache-mode http < requests.jsonl", "answers repeated requests from the cache"
      ),
    ])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    guard arguments.has(Self.jsonl) else {
      throw UsageError("fetch supports only JSON Lines; add --jsonl")
    }
    let caching = try CacheArguments(arguments)
    var options = try ClientOptions.requestOptions(arguments)
    // One attempt means no retries: `fetch` reports 502, 503 and 504 like any other response. `limits`
    // changes the number when `--retry` is given.
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
      // The draft shows a file that cannot be written before the first request.
      let file = try arguments.value(of: Self.metrics).map { path throws(NetOptError) in
        try MetricsFile(path)
      }
      do {
        try await fetches.run(lines, atOnce: concurrency)
      } catch {
        // The error of the run matters more than one of the file.
        try? file?.write(client.metrics)
        throw error
      }
      try file?.write(client.metrics)
    }
    return .ok
  }
}

/// The file of `--metrics`. Written once, by the task that made it.
private final class MetricsFile {
  private let path: String
  private var draft: FileDraft?

  /// - Throws: `unwritableFile`.
  init(_ path: String) throws(NetOptError) {
    self.path = path
    do throws(FileDraft.Failure) { draft = try FileDraft(of: path, mode: 0o644) } catch {
      throw FileBytes.failure(.unwritableFile, path, "the metrics", .receive, error.code)
    }
  }

  func write(_ metrics: ClientMetrics) throws(NetOptError) {
    guard let draft = draft.take() else { return }
    do throws(FileDraft.Failure) {
      try draft.write(Array(metrics.prometheusText.utf8))
      try draft.commit()
    } catch {
      throw FileBytes.failure(.unwritableFile, path, "the metrics", .receive, error.code)
    }
  }
}

/// Performs the requests of the input lines and writes an output line for each.
private struct Fetches: Sendable {
  let client: any Client
  /// The request options from the command line. They apply to every request.
  let options: RequestOptions
  /// The cache options from the command line.
  let caching: CacheArguments
  let output: LineOutput

  /// Performs the requests of all input lines, and writes an output line for each input line, also for an
  /// invalid one. Returns at the end of the input.
  ///
  /// - Parameter limit: the maximum number of requests under way at once.
  /// - Throws: the error of a write or of the input, after all requests that were read have ended. An error
  ///   of the input stops the reading at once. The method finds a failed write when it collects the result of its
  ///   task: one for each line after the first `limit` lines, and all others at the end of the input.
  func run(_ lines: LineSource, atOnce limit: Int) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      var underWay = 0
      // The error that stopped the reading. The requests that were read before the error still complete.
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

  /// Performs the request of an input line and returns its output line. A failure becomes an output line too.
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
          "\(line.url.brief) redirects, and the request line has \"redirect\": \"error\"")
      }
      let body = try await response.body.collect(upTo: FetchCommand.largest)
      return FetchAnswer.line(line.id, response, body: body)
    } catch {
      return FetchAnswer.line(line.id, error)
    }
  }
}

/// Writes output lines one after the other, for requests that run at the same time. It writes each line in
/// pieces: a whole line in memory would take several times the size of the response body in it.
private actor LineOutput {
  private let output: any ByteOutput

  init(_ output: any ByteOutput) { self.output = output }

  /// Writes a line and its line end.
  func write(_ line: JSONValue) throws {
    try line.write { (piece) throws(OutputError) in try output.write(piece) }
    try output.write([0x0a])
  }
}
