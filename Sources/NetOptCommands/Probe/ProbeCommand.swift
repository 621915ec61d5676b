import NetOpt
import NetOptCore
import NetOptEngine
import NetOptRouting

/// `netopt probe`: probes the list's endpoints and prints the ranking.
struct ProbeCommand: Command {
  private static let method = Option(
    "method", takes: .required("METHOD"),
    "probe with tcp (connect), tls (connect, handshake and certificate check), http (HEAD of the host's health path) or icmp (an echo request, as ping sends); default: tls, and tcp for port 80"
  )
  private static let watch = Option(
    "watch", "repeat the probe until interrupted (Ctrl-C, exit code 130)")
  private static let interval = Option(
    "interval", takes: .required("SECONDS"),
    "with --watch, pause between two rounds, 0.1 to 86400; default: 2")

  let declaration = CommandDeclaration(
    name: "probe",
    summary: "probe the endpoints of the IP list and print their ranking",
    details: """
      Probes every endpoint of the IP list, or only the endpoints of the given hosts, and prints the \
      endpoints in the order in which requests try them. Without --watch, the command fails when a \
      host has no endpoint that answers.

      With --method http, it requests the host's health path from each endpoint, and expects the status that \
      the list gives. For a host without a health path it requests /, and accepts any status below 500. \
      --method icmp needs a group in the range net.ipv4.ping_group_range, or CAP_NET_RAW. It measures the \
      round trip and does not show whether a server runs at the address.

      With --watch on a terminal, each round redraws the tables. When the output is not a terminal, each \
      round prints new tables. With --json, each round prints one object on a line. Times are smoothed over \
      the rounds. A given host that leaves the list is not probed until it returns.
      """,
    operands: "[HOST...]", operandCount: 0...10_000,
    options: [
      OptionGroup(
        "Probing",
        [
          method, watch, interval, ClientOptions.list, ClientOptions.trustedKey, ClientOptions.allowPrivate,
          ClientOptions.caFile,
        ]),
      TLSOptions.group,
      OptionGroup("Output", [.json]),
    ],
    examples: [
      .init("netopt probe", "probes all hosts of the list"),
      .init("netopt probe --method tcp one.one.one.one", "measures the TCP connections to one host"),
      .init("netopt probe --watch --interval 5", "repeats the probe with pauses of 5 seconds"),
      .init(
        "netopt probe --json | jq '.hosts[].endpoints[] | select(.chosen)'",
        "prints the endpoints that requests would use"),
    ])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    let method = try arguments.choice(Self.method, of: ProbeMethod.self)
    var configuration = try ClientOptions.configuration(arguments, in: context)
    // The output must contain only the measurements of this command. So the client makes no start-up probes
    // and reads no saved ranking.
    configuration.probing.atStart = false
    configuration.rankingHistory = .none
    let hosts = arguments.operands.map(Origin.normalized(host:))
    let isJSON = arguments.has(.json)
    let interval = try arguments.number(Self.interval, in: 0.1...86_400)
    if interval != nil, !arguments.has(Self.watch) { throw UsageError("--interval needs --watch") }
    let probes = try await context.withClient(configuration) { client in
      try Self.check(hosts, against: client.list)
      guard arguments.has(Self.watch) else {
        return try await client.probe(hosts: hosts.isEmpty ? nil : hosts, method: method)
      }
      var round = 0
      var missing: Set<String> = []
      while true {
        // The list may have changed since the last round.
        let listed = hosts.filter { client.list?.hosts[$0] != nil }
        missing = Self.tell(missing: Set(hosts).subtracting(listed), before: missing, in: context)
        if hosts.isEmpty || !listed.isEmpty {
          do {
            let probes = try await client.probe(hosts: hosts.isEmpty ? nil : listed, method: method)
            // An interrupted probe has no complete result to print.
            guard !Task.isCancelled else { return [HostProbe]() }
            try Self.print(probes, isJSON, round: round, in: context)
            round += 1
          } catch let error as NetOptError where error.code == .invalidRequest {
            // The list has lost a host since `listed` was computed. The next round reports which host.
          }
        }
        do { try await Task.sleep(for: .seconds(interval ?? 2)) } catch { return [HostProbe]() }
      }
    }
    if arguments.has(Self.watch) { return .ok }
    try Self.print(probes, isJSON, round: nil, in: context)
    let silent = probes.filter { !$0.endpoints.contains { $0.rtt != nil && $0.failure == nil } }
    for probe in silent { context.say("no endpoint of \(probe.host) answered") }
    return silent.isEmpty ? .ok : .failed
  }

  /// Prints a message for each host that has left the list since the last round, and for each host that has
  /// returned.
  ///
  /// - Parameters:
  ///   - missing: the hosts of the command line that the list does not contain now.
  ///   - before: the hosts that were missing in the last round.
  /// - Returns: `missing`.
  private static func tell(
    missing: Set<String>, before: Set<String>, in context: CommandContext
  ) -> Set<String> {
    for host in missing.subtracting(before).sorted() {
      context.say("\(host) left the list; netopt probes it again when it returns")
    }
    for host in before.subtracting(missing).sorted() { context.say("\(host) is in the list again") }
    return missing
  }

  /// Prints the result of one round. With `--watch` on a terminal, the text replaces the text of the previous
  /// round.
  ///
  /// - Parameter round: the number of the round from 0; `nil` without `--watch`.
  private static func print(
    _ probes: [HostProbe], _ isJSON: Bool, round: Int?, in context: CommandContext
  ) throws(OutputError) {
    let report = ProbeReport(probes)
    if isJSON { return try context.print(report.json(network: DefaultRoute.current?.description)) }
    let before: String
    switch round {
    // Moves the cursor to the top left corner and erases the display below (ECMA-48: CUP, ED).
    case _? where context.output.isTerminal: before = "\u{1b}[H\u{1b}[J"
    case let round? where round > 0: before = "\n"
    default: before = ""
    }
    try context.output.write(before + report.text)
  }

  /// Checks that there is a list and that it contains all hosts of the command line.
  private static func check(_ hosts: [String], against list: EndpointList?) throws(UsageError) {
    guard let list else {
      throw UsageError("there is no IP list; give one with --iplist FILE or NETOPT_IPLIST")
    }
    for host in hosts where list.hosts[host] == nil {
      let known = list.hosts.keys.sorted()
      let meant = EditDistance.closest(to: host, among: known)
      let hint = meant ?? known.prefix(5).joined(separator: ", ")
      throw UsageError(
        "\(HTTPURL.shown(given: host)) is not in the list"
          + (meant == nil ? "; the list has \(hint)" : "; did you mean \(hint)?"))
    }
  }
}
