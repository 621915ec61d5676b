import NetOpt
import NetOptBench
import NetOptCore
import NetOptRouting

/// `netopt bench`: measures the addresses that the list has for a host, and compares them with each other and
/// with the addresses from DNS.
struct BenchCommand: Command {
  let declaration = CommandDeclaration(
    name: "bench",
    summary: "measure which address of a host is the fastest from this machine",
    details: """
      Sends the same request repeatedly to every address that the IP list has for the host of the URL, and \
      to the addresses from DNS. bench works in rounds: in each round, each target gets one request, one at \
      a time, in random order. Each cold request opens a new connection. Warm requests use open connections.

      A first request to each target finds the targets that cannot be used. bench excludes a target that \
      refuses connections, does not respond, has a certificate for another name, or answers with another \
      status than most targets. Only 2xx and 3xx count as success. bench does not follow redirects.

      bench compares each target with DNS round by round, with a signed-rank test. The test accounts for \
      autocorrelated noise, and the p values account for the number of targets. Targets that the test cannot \
      tell apart share a rank. bench shows a percentile only if there are enough samples for it: p50 needs \
      6, p90 36, p95 72, p99 368, p99.9 3688. The default run shows p50 and p95 of the warm requests and the \
      p50 of the phases of the cold requests; -n 400 shows p99 too.

      With -q, bench measures each time from the scheduled time of the request. A stalled server therefore \
      shows in all requests that were scheduled during the stall.

      --drill measures the cost of each address that could not be used, 12 times for each address. It times \
      the first calls of two new clients. The list of one client begins with the address; the list of the \
      other does not have it. It also measures how many of 10 calls try the address, and after what \
      time calls no longer try it.

      A run stops at 1,000,000 samples. A signal (Ctrl-C) stops the run; bench then prints the report of the \
      rounds so far and marks it as partial. A second signal ends the program at once. The exit code is 1 \
      when no target answered, 3 when some targets failed and --strict was given, and 4 when a target missed \
      an objective of --slo.
      """,
    operands: "URL", operandCount: 1...1,
    options: BenchArguments.options,
    examples: [
      .init("netopt bench https://one.one.one.one/", "ranks the addresses of the built-in IP list"),
      .init(
        "netopt bench --iplist iplist.json --warm -n 400 https://api.example.com/v1/ping",
        "runs enough rounds for p99"),
      .init(
        "netopt bench --json=run.json --strict https://api.example.com/v1/ping",
        "saves the run, and exits with 3 when a target fails"),
      .init(
        "netopt bench -q 50 -z 60s --html run.html --slo 'p95<200ms,errors<1%' https://api.example.com/v1/ping",
        "sends 50 requests per second for 1 minute, and gives charts and an exit code for monitoring"),
    ])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    let wanted = try BenchArguments(arguments, in: context)
    // Creates the output files before the run, so that the command fails before any measurement if it cannot
    // write a file.
    var files = try BenchFiles(wanted.files)
    let run = RunContext(arguments, in: context)
    var configuration = try ClientOptions.configuration(arguments, in: context)
    configuration.probing.atStart = false
    configuration.proxy = .none
    // The ranking from one run must not influence the next run.
    configuration.rankingHistory = .none
    // `idle` has room for one idle connection to each target, for the warm requests. `total` also has room
    // for the connections of the first requests to the targets, and for those that cold requests open and
    // close.
    configuration.connections.idle = EndpointList.maximumEndpoints
    configuration.connections.total =
      EndpointList.maximumEndpoints + Preflight.concurrency + wanted.settings.streams
    // Background probes would disturb the measurement, so the clients of the run send none. The clients of
    // the drill have the usual settings.
    var measuring = configuration
    measuring.probing.inBackground = false
    var report = try await Self.withClients(wanted.settings.concurrency, measuring, in: context) {
      clients in
      await Self.measure(wanted, run, clients, in: context)
    }
    report.samplesPath = wanted.files.csv
    if wanted.drills { await Self.drill(wanted.settings.request, configuration, &report, in: context) }
    let isColoured = TextColour(
      isRefused: wanted.refusesColour, isTerminal: context.output.isTerminal, environment: context.environment
    )
    let finished = report
    // A new task prints the report, because a signal that stopped the run has cancelled this task. If
    // printing fails, the files are still written, and the error is thrown afterwards.
    let printed = await Task {
      Result {
        if wanted.printsJSON {
          try context.print(JSONReport(finished).value)
        } else {
          try context.output.write(TextReport(finished, colour: isColoured).text)
        }
      }
    }.value
    try files.write(report)
    try printed.get()
    return Self.exitCode(report, isStrict: wanted.isStrict)
  }

  /// Runs the failover drill after the run, and adds its results to the report. If a signal stopped the run,
  /// or if the drill has no results, adds a warning with the reason instead.
  private static func drill(
    _ request: NetOptRequest, _ configuration: ClientConfiguration, _ report: inout BenchReport,
    in context: CommandContext
  ) async {
    let wasStopped = report.stopReason == .interrupted
    if !wasStopped {
      report.drills = await BenchDrill(request, configuration, in: context).results(after: report)
      if Task.isCancelled { report.stopReason = .interrupted }
    }
    guard report.drills?.isEmpty ?? true else { return }
    let reason =
      wasStopped || Task.isCancelled
      ? "the run was stopped before the drill"
      : "it needs an address of the list that cannot be used, and one that can"
    let warning = BenchWarning("nothing-to-drill", "there is no drill: \(reason)")
    report.warnings.append(warning)
    context.say("warning: \(warning.text)")
  }

  /// Creates `count` clients, runs the work with them, and shuts them down. A client has one connection to
  /// each target, so `count` is the number of connections to each target.
  private static func withClients(
    _ count: Int, _ configuration: ClientConfiguration, in context: CommandContext,
    _ work: ([any Client]) async throws -> BenchReport
  ) async throws -> BenchReport {
    try await context.withClient(configuration) { client in
      if count == 1 { return try await work([client]) }
      return try await withClients(count - 1, configuration, in: context) { try await work([client] + $0) }
    }
  }

  /// Selects the targets, runs the measurement and returns its report. Prints warnings on standard error.
  private static func measure(
    _ wanted: BenchArguments, _ run: RunContext, _ clients: [any Client], in context: CommandContext
  ) async -> BenchReport {
    var settings = wanted.settings
    let client = clients[0]
    let origin = settings.request.url.origin
    let entry = client.list?.hosts[origin.host]
    let listed = entry?.endpoints.map { BenchTarget($0.address, port: entry?.port ?? 0, region: $0.region) }
    let selection = TargetSelection(
      wanted.kinds, family: settings.request.options.family, origin: origin, listed: listed)
    settings.targets = selection.targets

    var warnings = selection.warnings + circumstances(settings, in: context)
    if let reference = settings.reference, !settings.targets.contains(where: { $0.id == reference }) {
      warnings.append(
        BenchWarning("no-reference", "\(reference) is not a target of this run: there is no comparison"))
    }
    for warning in warnings { context.say("warning: \(warning.text)") }
    // Only the report gets this warning here, because `withClient` has already printed it.
    if let warning = client.listWarning { warnings.append(BenchWarning("list", warning.message)) }
    // The number of warnings that the command has already printed. The report of the run may add more.
    let known = warnings.count

    let progress = ProgressOutput(context, isQuiet: wanted.isQuiet)
    let report = await BenchRun(
      settings, clients: clients.map { BenchedClient($0) }, cpuTime: RunContext.cpuTime,
      progress: progress.show
    ).report(run, warnings: warnings)
    progress.clear()
    for warning in report.warnings.dropFirst(known) { context.say("warning: \(warning.text)") }
    return report
  }

  /// Returns warnings if certificates are not verified, and if bench ignores a proxy that the environment
  /// names.
  private static func circumstances(_ settings: BenchSettings, in context: CommandContext) -> [BenchWarning] {
    var warnings: [BenchWarning] = []
    if settings.request.options.verification == .none {
      warnings.append(
        BenchWarning("unverified", "certificates are not verified (-k): another server may have answered"))
    }
    let scheme = settings.request.url.origin.scheme.rawValue
    let names = ["\(scheme)_proxy", "all_proxy", "ALL_PROXY"] + (scheme == "https" ? ["HTTPS_PROXY"] : [])
    if let name = names.first(where: { context.variable($0) != nil }) {
      warnings.append(
        BenchWarning("proxy", "bench ignores the proxy in \(name) and measures direct connections"))
    }
    return warnings
  }

  /// Returns the exit code for a report. A missed objective takes precedence over targets that failed.
  private static func exitCode(_ report: BenchReport, isStrict: Bool) -> ExitCode {
    if !report.hasUsableAnswers { return .failed }
    if report.verdicts.contains(where: { !$0.isMet }) { return .objectiveMissed }
    return isStrict && report.hasFailures ? .someTargetsFailed : .ok
  }
}

/// Adapts a `Client` to `BenchClient`, the interface through which a run sends requests.
private struct BenchedClient: BenchClient {
  private let client: any Client

  init(_ client: any Client) { self.client = client }

  /// The executor of the client's event loop. A task on this executor sends requests and gets responses
  /// without a change of threads.
  var executor: (any TaskExecutor)? { (client as? NetOptClient)?.loopExecutor }

  func execute(_ request: NetOptRequest) async throws(NetOptError) -> NetOptResponse {
    try await client.execute(request)
  }

  func resolve(_ host: String, fresh: Bool) async throws(NetOptError) -> ResolvedAddresses {
    try await client.resolve(host, fresh: fresh)
  }

  /// Probes the list's endpoints of a host with the configured method. Returns the address that the next
  /// request would try first, and the addresses that answered, the best first.
  func startUpChoice(for host: String) async throws(NetOptError) -> StartUpChoice {
    let endpoints = try await client.probe(hosts: [host], method: nil).first?.endpoints ?? []
    let ranked = endpoints.filter { $0.rank != nil && $0.failure == nil }
    return StartUpChoice(
      chosen: endpoints.first { $0.chosen }?.address,
      ranking: ranked.sorted { ($0.rank ?? .max) < ($1.rank ?? .max) }.map(\.address))
  }
}
