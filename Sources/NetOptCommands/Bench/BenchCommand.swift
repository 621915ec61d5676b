import NetOpt
import NetOptBench
import NetOptCore
import NetOptRouting

/// `netopt bench`: measures the list's addresses of a host against each other and against DNS.
struct BenchCommand: Command {
  let declaration = CommandDeclaration(
    name: "bench",
    summary: "measure which address of a host is the fastest from here",
    details: """
      Sends the same request again and again to every address that the list has for the URL's host, and to what \
      DNS answers, in rounds: each target once, one request at a time, in random order. Cold requests open a \
      connection each, warm ones use connections that are kept.

      A first request to each target leaves out those that refuse, are silent, have another name's certificate \
      or answer another status than most; only 2xx and 3xx count. Redirects are not followed.

      A percentile is shown when there are enough samples for it: p50 needs 6, p90 36, p95 72, p99 368. The \
      default run shows p50 and p95 of the warm requests and the p50 of the phases of the cold ones; -n 400 shows \
      p99 too. Differences are shown as they were measured, without a test of their significance.

      A signal (Ctrl-C) stops the run: the report of the rounds so far is printed and marked as partial. A second \
      one ends the program at once. Exits with 1 when no target answered, with 3 when some failed and --strict \
      was given.
      """,
    operands: "URL", operandCount: 1...1,
    options: BenchArguments.options,
    examples: [
      .init("netopt bench https://one.one.one.one/", "ranks the addresses of the built-in list"),
      .init(
        "netopt bench --iplist iplist.json --warm -n 400 https://api.example.com/v1/ping",
        "has enough rounds for p99"),
      .init(
        "netopt bench --json=run.json --strict https://api.example.com/v1/ping",
        "keeps the run, and fails with 3 when a target does"),
    ])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    let wanted = try BenchArguments(arguments, in: context)
    var file: FileReplacement?
    // Begun before the run: nobody should wait for a report that cannot be kept.
    if case .file(let name) = wanted.json { file = try FileReplacement(name) }
    let run = RunContext(arguments, in: context)
    var configuration = try ClientOptions.configuration(arguments, in: context)
    configuration.probing.atStart = false
    configuration.proxy = .none
    // What one run has learned must not decide what the next one finds.
    configuration.rankingHistory = .none
    // Every target keeps a connection for the warm block.
    configuration.connections.idle = EndpointList.maximumEndpoints
    configuration.connections.total = EndpointList.maximumEndpoints + Preflight.concurrency
    let report = try await context.withClient(configuration) { client in
      await Self.measure(wanted, run, client, in: context)
    }
    let json = JSONReport(report).value
    if let file = file.take() {
      try file.write(json.bytes() + [0x0a])
      try file.commit()
    }
    let isColoured = TextColour(
      isRefused: wanted.refusesColour, isTerminal: context.output.isTerminal, environment: context.environment
    )
    // In a task of its own, so that the signal that stopped the run does not stop the report too.
    try await Task {
      switch wanted.json {
      case .output: try context.print(json)
      case .none, .file: try context.output.write(TextReport(report, colour: isColoured).text)
      }
    }.value
    return Self.exitCode(report, isStrict: wanted.isStrict)
  }

  private static func measure(
    _ wanted: BenchArguments, _ run: RunContext, _ client: any Client, in context: CommandContext
  ) async -> BenchReport {
    var settings = wanted.settings
    let origin = settings.request.url.origin
    let entry = client.list?.hosts[origin.host]
    let listed = entry?.endpoints.map { BenchTarget($0.address, port: entry?.port ?? 0, region: $0.region) }
    let selection = TargetSelection(
      wanted.kinds, family: settings.request.options.family, origin: origin, listed: listed)
    settings.targets = selection.targets

    var warnings = selection.warnings + circumstances(settings, in: context)
    for warning in warnings { context.say("warning: \(warning.text)") }
    // This one was said when the client was made.
    if let warning = client.listWarning { warnings.append(BenchWarning("list", warning.message)) }
    let known = warnings.count

    let progress = ProgressOutput(context.errors, isQuiet: wanted.isQuiet)
    let report = await BenchRun(settings, client: BenchedClient(client), progress: progress.show)
      .report(run, warnings: warnings)
    progress.clear()
    for warning in report.warnings.dropFirst(known) { context.say("warning: \(warning.text)") }
    return report
  }

  /// What about the way of measuring the reader of the report has to know.
  private static func circumstances(_ settings: BenchSettings, in context: CommandContext) -> [BenchWarning] {
    var warnings: [BenchWarning] = []
    if settings.request.options.verification == .none {
      warnings.append(
        BenchWarning("unverified", "certificates are not checked (-k): anyone may have answered"))
    }
    let scheme = settings.request.url.origin.scheme.rawValue
    let names = ["\(scheme)_proxy", "all_proxy", "ALL_PROXY"] + (scheme == "https" ? ["HTTPS_PROXY"] : [])
    if let name = names.first(where: { context.variable($0) != nil }) {
      warnings.append(
        BenchWarning("proxy", "the proxy of \(name) is not used: what is measured is the way without it"))
    }
    return warnings
  }

  private static func exitCode(_ report: BenchReport, isStrict: Bool) -> ExitCode {
    if !report.hasAnswers { return .failed }
    return isStrict && report.hasFailures ? .someTargetsFailed : .ok
  }
}

/// A command's client as a run sees it.
private struct BenchedClient: BenchClient {
  private let client: any Client

  init(_ client: any Client) { self.client = client }

  func execute(_ request: HTTPRequest) async throws(NetOptError) -> HTTPResponse {
    try await client.execute(request)
  }

  func resolve(_ host: String, fresh: Bool) async throws(NetOptError) -> ResolvedAddresses {
    try await client.resolve(host, fresh: fresh)
  }

  func startUpChoice(for host: String) async throws(NetOptError) -> IPAddress? {
    try await client.probe(hosts: [host], method: nil).first?.endpoints.first { $0.chosen }?.address
  }
}
