import NetOptBench
import NetOptCore

/// The options of `netopt bench`, and the settings that the user chooses with them.
struct BenchArguments {
  private static let rounds = Option(
    "rounds", short: "n", takes: .required("N"),
    "number of rounds of each block, 1 to 100000; default: 80 warm, 10 cold")
  private static let duration = Option(
    "duration", short: "z", takes: .required("TIME"),
    "measure for TIME instead, such as 30s or 2m, 1ms to 24h; each of two blocks gets half of it")
  private static let warmup = Option(
    "warmup", takes: .required("N"),
    "number of uncounted rounds before the warm block, 0 to 1000; default: 2")
  private static let cold = Option(
    "cold", "run only the cold block: a new connection, look-up and TLS session for each request")
  private static let warm = Option("warm", "run only the warm block: requests on open connections")
  private static let both = Option("both", "run both blocks, cold first (the default)")
  private static let targets = Option(
    "targets", takes: .required("KINDS"),
    "targets: ip (the addresses of the IP list), dns (the addresses from DNS); default: ip,dns")
  private static let rate = Option(
    "rate", short: "q", takes: .required("N"),
    "send N requests per second, 0.001 to 100000, at fixed times that do not depend on responses (open loop)")
  private static let connections = Option(
    "connections", short: "c", takes: .required("N"),
    "number of connections to each target, 1 to 64; default: 1")
  private static let streams = Option(
    "streams", short: "p", takes: .required("N"),
    "number of parallel requests on each connection, 1 to 1000; not with -q; default: 1")
  private static let reference = Option(
    "reference", takes: .required("TARGET"), "compare the other targets with TARGET; default: dns")
  private static let alpha = Option(
    "alpha", takes: .required("P"),
    "significance level (false positive rate), 0.0001 to 0.5; intervals have a confidence of 1 - P; default: 0.05"
  )
  private static let minimumEffect = Option(
    "min-effect", takes: .required("PERCENT"),
    "smallest shift to report as significant, 0 to 100 % of the reference's p50; default: 1")
  private static let seed = Option(
    "seed", takes: .required("N"),
    "seed of the random order of the targets, 0 to 2^53 - 1; default: random, shown in the report")

  private static let maxTime = Option(
    "max-time", short: "m", takes: .required("SECONDS"),
    "time limit for a request, including the body, at most 1 year; 0 for no limit; default: 10")
  private static let connectTimeout = Option(
    "connect-timeout", takes: .required("SECONDS"),
    "time limit for a connection to one address, including TLS, at most 1 year; 0 for the default: 3")

  private static let json = Option(
    "json", takes: .optional("FILE"),
    "print the report as one JSON object, or write it to FILE beside the text; its schema is in docs/schemas")
  private static let exportJSON = Option(
    "export-json", takes: .required("FILE"), "same as --json=FILE")
  private static let exportCSV = Option(
    "export-csv", takes: .required("FILE"), "write all samples to FILE as comma-separated values")
  private static let exportMarkdown = Option(
    "export-markdown", takes: .required("FILE"), "write the ranking to FILE as a Markdown table")
  private static let html = Option(
    "html", takes: .required("FILE"),
    "write the report with charts to FILE, an HTML page that needs no network")
  private static let slo = Option(
    "slo", takes: .required("LIST"),
    "exit with 4 unless every measured target meets the objectives, such as 'p95<200ms,errors<1%'; p50 to p99.9, mean and max apply to the warm block (with --cold: to the cold block), errors to both"
  )
  private static let drill = Option(
    "drill",
    "after the run, measure the first calls of new clients whose list begins with an address that could not be used"
  )
  private static let strict = Option("strict", "exit with 3 when any target was excluded or failed")
  private static let quiet = Option("quiet", "show no progress")
  private static let noColour = Option("no-color", "print without colour, even on a terminal")

  /// The options in the order of the help text.
  static let options = [
    OptionGroup(
      "Measuring",
      [
        rounds, duration, rate, connections, streams, warmup, cold, warm, both, targets, seed, drill,
      ]),
    OptionGroup("Comparing", [reference, alpha, minimumEffect]),
    OptionGroup("Request", [RequestArguments.method, RequestArguments.header, RequestArguments.data]),
    OptionGroup(
      "Routing",
      [
        ClientOptions.list, ClientOptions.trustedKey, ClientOptions.allowPrivate, ClientOptions.dnsServers,
        ClientOptions.ipv4,
        ClientOptions.ipv6,
      ]),
    OptionGroup(
      "Connection",
      [
        ClientOptions.caFile, ClientOptions.insecure, ClientOptions.http1, ClientOptions.http2, maxTime,
        connectTimeout,
      ]),
    TLSOptions.group,
    OptionGroup(
      "Output",
      [json, html, exportJSON, exportCSV, exportMarkdown, slo, strict, quiet, noColour]),
  ]

  /// The files that a run writes in addition to standard output.
  struct Files: Hashable {
    /// The paths of the files for the JSON report: of `--json=FILE` and of `--export-json`, at most two.
    var json: [String] = []
    /// The path of the CSV file with all samples.
    var csv: String?
    /// The path of the Markdown file with the ranking table.
    var markdown: String?
    /// The path of the HTML page with the charts.
    var html: String?
  }

  /// The settings of the run. They have no targets yet, because the command selects the targets after the
  /// client has loaded the list.
  let settings: BenchSettings
  /// The kinds of targets to measure: addresses of the list, addresses from DNS, or both (`--targets`).
  let kinds: Set<BenchTarget.Kind>
  /// Whether the command prints the JSON report on standard output instead of the text.
  let printsJSON: Bool
  /// The files to write.
  let files: Files
  /// Whether the command runs the failover drill after the run (`--drill`). The drill measures what an
  /// unusable address costs the first calls of a new client (`BenchDrill`).
  let drills: Bool
  /// Whether the exit code is 3 when a target was excluded or failed (`--strict`).
  let isStrict: Bool
  /// Whether the command shows no progress (`--quiet`).
  let isQuiet: Bool
  /// Whether the user forbids colour in the text, even on a terminal (`--no-color`).
  let refusesColour: Bool

  /// Reads the options.
  ///
  /// - Throws: `UsageError`; `NetOptError` for an invalid URL and for a file that cannot be read.
  init(_ arguments: Arguments, in context: CommandContext) throws {
    var request = try RequestArguments.request(arguments, isHead: false, in: context)
    let limit = try arguments.seconds(Self.maxTime) ?? .seconds(10)
    request.options.timeout = limit == .zero ? nil : limit
    request.options.connectTimeout = .seconds(3)
    if let limit = try arguments.seconds(Self.connectTimeout), limit > .zero {
      request.options.connectTimeout = limit
    }
    // The seed has at most 53 bits, because not all JSON readers read larger integers exactly (RFC 8259,
    // section 6).
    let seed = try arguments.integer(Self.seed, in: 0...(1 << 53 - 1)) ?? Int.random(in: 0..<(1 << 53))
    var settings = BenchSettings(request, targets: [], seed: UInt64(seed))
    settings.blocks = Self.blocks(arguments)
    settings.length = try Self.length(arguments)
    settings.warmup = try arguments.integer(Self.warmup, in: 0...1_000) ?? settings.warmup
    try Self.load(arguments, &settings)
    settings.alpha = try arguments.number(Self.alpha, in: 0.000_1...0.5) ?? settings.alpha
    settings.minimumEffect =
      try arguments.number(Self.minimumEffect, in: 0...100).map { $0 / 100 } ?? settings.minimumEffect
    settings.reference = try arguments.value(of: Self.reference).map(Self.target)
    if let text = arguments.value(of: Self.slo) {
      do throws(Objective.Fault) {
        settings.objectives = try Objective.list(text)
      } catch { throw UsageError("\(Self.slo.name): \(error)") }
    }
    self.settings = settings
    kinds = try Self.kinds(arguments)
    let json = arguments.value(of: Self.json)
    printsJSON = arguments.has(Self.json) && (json ?? "-") == "-"
    files = Files(
      json: [json.flatMap { $0 == "-" ? nil : $0 }, arguments.value(of: Self.exportJSON)].compactMap { $0 },
      csv: arguments.value(of: Self.exportCSV), markdown: arguments.value(of: Self.exportMarkdown),
      html: arguments.value(of: Self.html))
    drills = arguments.has(Self.drill)
    isStrict = arguments.has(Self.strict)
    isQuiet = arguments.has(Self.quiet)
    refusesColour = arguments.has(Self.noColour)
  }

  /// Reads the options that set the load: the rate, the number of connections and the number of parallel
  /// requests on each connection.
  private static func load(_ arguments: Arguments, _ settings: inout BenchSettings) throws(UsageError) {
    settings.rate = try arguments.number(rate, in: 0.001...100_000)
    settings.concurrency = try arguments.integer(connections, in: 1...64) ?? 1
    settings.streams = try arguments.integer(streams, in: 1...1_000) ?? 1
    if settings.rate != nil, arguments.has(streams) {
      throw UsageError(
        "-q sends requests at fixed times, so it does not work with -p; remove one of them")
    }
  }

  /// Returns the name of a target as reports write it: `dns`, or the address in its standard form.
  private static func target(_ text: String) throws(UsageError) -> String {
    if text == BenchTarget.Kind.dns.rawValue { return text }
    guard let address = IPAddress(text) else {
      throw UsageError("\(reference.name) takes dns or an address of the list, not \"\(text)\"")
    }
    return address.description
  }

  /// Returns the blocks to run. Both blocks run by default, with `--both`, and with `--cold` and `--warm`
  /// together.
  private static func blocks(_ arguments: Arguments) -> [Block] {
    switch (arguments.has(cold), arguments.has(warm), arguments.has(both)) {
    case (true, false, false): [.cold]
    case (false, true, false): [.warm]
    default: [.cold, .warm]
    }
  }

  /// Returns the length of the run: from `--duration`, else from `--rounds`, else the default.
  private static func length(_ arguments: Arguments) throws(UsageError) -> BenchLength {
    guard let text = arguments.value(of: duration) else {
      return try arguments.integer(rounds, in: 1...100_000).map { .rounds(cold: $0, warm: $0) } ?? .standard
    }
    if arguments.has(rounds) {
      throw UsageError("-n and -z both set the length of the run; remove one of them")
    }
    guard let duration = parse(duration: text) else {
      throw UsageError(
        "\(Self.duration.name) takes a time from 1ms to 24h, as 500ms, 30s, 2m or 1h, not \"\(text)\"")
    }
    return .duration(duration)
  }

  /// Parses a duration of 1 ms to 24 h with the unit ms, s, m or h. A number without a unit is in seconds.
  private static func parse(duration text: String) -> Duration? {
    let digits = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
    let units = ["": 1.0, "ms": 0.001, "s": 1, "m": 60, "h": 3_600]
    guard let number = Double(digits), let unit = units[String(text[digits.endIndex...])] else { return nil }
    let seconds = number * unit
    guard (0.001...86_400).contains(seconds) else { return nil }
    return .nanoseconds(Int64(clamped: (seconds * 1e9).rounded()))
  }

  /// Returns the kinds of targets in `--targets`; all kinds without this option.
  private static func kinds(_ arguments: Arguments) throws(UsageError) -> Set<BenchTarget.Kind> {
    guard let text = arguments.value(of: targets) else { return Set(BenchTarget.Kind.allCases) }
    var kinds: Set<BenchTarget.Kind> = []
    for word in text.split(separator: ",", omittingEmptySubsequences: false) {
      guard let kind = BenchTarget.Kind(rawValue: String(word)) else {
        throw UsageError("\(targets.name) takes ip, dns, or both separated by a comma, not \"\(text)\"")
      }
      kinds.insert(kind)
    }
    return kinds
  }
}
