import NetOpt
import NetOptCore
import NetOptEngine
import NetOptRouting

/// `netopt probe`: probes the list's endpoints and prints the ranking.
struct ProbeCommand: Command {
  private static let method = Option(
    "method", takes: .required("METHOD"),
    "tcp (connect), tls (connect, handshake and check the certificate), http (a HEAD of the host's health path) or icmp (an echo request, as ping sends); default: tls, and tcp for port 80"
  )
  private static let watch = Option(
    "watch", "probe again and again until interrupted (Ctrl-C, exit code 130)")
  private static let interval = Option(
    "interval", takes: .required("SECONDS"),
    "with --watch, the time from one round to the next, 0.1 to 86400; default: 2")

  let declaration = CommandDeclaration(
    name: "probe",
    summary: "ping the list's endpoints and print the ranking",
    details: """
      Opens connections to every endpoint of the list, or of some hosts of it, and prints them in the order in \
      which requests would try them. Fails when a host has no endpoint that answers.

      --method http asks each endpoint for the health path that the list gives the host, and expects the status that \
      it gives. Of a host without one it asks for /, and any status below 500 will do. --method icmp needs a group in \
      the range net.ipv4.ping_group_range, or CAP_NET_RAW; what comes of it is a round trip and says nothing about \
      whether a server runs there.

      --watch redraws the table on a terminal; otherwise it prints one table after the other, and with --json one \
      object a line. Times are smoothed over the rounds. A host that is taken out of the list meanwhile is waited for.
      """,
    operands: "[HOST...]", operandCount: 0...10_000,
    options: [
      OptionGroup(
        "Probing",
        [
          method, watch, interval, ClientOptions.list, ClientOptions.trustedKey, ClientOptions.allowPrivate,
          ClientOptions.caFile,
        ]),
      OptionGroup("Output", [.json]),
    ],
    examples: [
      .init("netopt probe", "probes all hosts of the list"),
      .init("netopt probe --method tcp one.one.one.one", "measures TCP alone, of one host"),
      .init("netopt probe --watch --interval 5", "watches the ranking change"),
      .init(
        "netopt probe --json | jq '.hosts[].endpoints[] | select(.chosen)'",
        "prints the endpoints that requests would go to"),
    ])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    let method = try arguments.choice(Self.method, of: ProbeMethod.self)
    var configuration = try ClientOptions.configuration(arguments, in: context)
    // The command prints its own measurements only: no probes at the start, and no saved ranking.
    configuration.probing.atStart = false
    configuration.rankingHistory = .none
    let hosts = arguments.operands.map(Origin.normalized(host:))
    let isJSON = arguments.has(.json)
    let interval = try arguments.number(Self.interval, in: 0.1...86_400)
    if interval != nil, !arguments.has(Self.watch) { throw UsageError("--interval goes with --watch") }
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
            // Ignores the result of an interrupted probe.
            guard !Task.isCancelled else { return [HostProbe]() }
            try Self.print(probes, isJSON, round: round, in: context)
            round += 1
          } catch let error as NetOptError where error.code == .invalidRequest {
            // The list has just lost a host. The next round reports which host.
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

  /// Reports the hosts that the list has lost, and the hosts that are back in the list.
  private static func tell(
    missing: Set<String>, before: Set<String>, in context: CommandContext
  ) -> Set<String> {
    for host in missing.subtracting(before).sorted() {
      context.say("\(host) is not in the list any more; it is probed again when it is back")
    }
    for host in before.subtracting(missing).sorted() { context.say("\(host) is in the list again") }
    return missing
  }

  /// Prints one round.
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

  private static func check(_ hosts: [String], against list: EndpointList?) throws(UsageError) {
    guard let list else {
      throw UsageError("there is no list to probe; name one with --iplist FILE or NETOPT_IPLIST")
    }
    for host in hosts where list.hosts[host] == nil {
      let known = list.hosts.keys.sorted()
      let meant = EditDistance.closest(to: host, among: known)
      let hint = meant ?? known.prefix(5).joined(separator: ", ")
      throw UsageError(
        "\(HTTPURL.shown(given: host)) is not in the list"
          + (meant == nil ? ", which has \(hint)" : "; did you mean \(hint)?"))
    }
  }
}
