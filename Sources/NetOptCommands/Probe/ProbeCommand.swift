import NetOpt
import NetOptCore
import NetOptRouting

/// `netopt probe`: pings the list's endpoints and prints the ranking.
struct ProbeCommand: Command {
  private static let method = Option(
    "method", takes: .required("METHOD"),
    "tcp (connect) or tls (connect, handshake and check the certificate); default: what the list's ports ask for"
  )

  let declaration = CommandDeclaration(
    name: "probe",
    summary: "ping the list's endpoints and print the ranking",
    details: """
      Opens connections to every endpoint of the list, or of some hosts of it, and prints them in the order in \
      which requests would try them. Fails when a host has no endpoint that answers.
      """,
    operands: "[HOST...]", operandCount: 0...10_000,
    options: [
      OptionGroup(
        "Probing",
        [
          method, ClientOptions.list, ClientOptions.trustedKey, ClientOptions.allowPrivate,
          ClientOptions.caFile,
        ]),
      OptionGroup("Output", [.json]),
    ],
    examples: [
      .init("netopt probe", "probes all hosts of the list"),
      .init("netopt probe --method tcp one.one.one.one", "measures TCP alone, of one host"),
      .init(
        "netopt probe --json | jq '.hosts[].endpoints[] | select(.chosen)'",
        "prints the endpoints that requests would go to"),
    ])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    let method = try arguments.choice(Self.method, of: ProbeMethod.self)
    var configuration = try ClientOptions.configuration(arguments, in: context)
    // What the command measures is what it prints: nothing is measured beside it.
    configuration.probing.atStart = false
    configuration.listUpdates.refresh = false
    let hosts = arguments.operands.map(Origin.normalized(host:))
    let probes = try await context.withClient(configuration) { client in
      try Self.check(hosts, against: client.list)
      return try await client.probe(hosts: hosts.isEmpty ? nil : hosts, method: method)
    }
    if arguments.has(.json) {
      try context.print(ProbeReport(probes).json(network: DefaultRoute.current?.description))
    } else {
      try context.output.write(ProbeReport(probes).text)
    }
    let silent = probes.filter { !$0.endpoints.contains { $0.rtt != nil && $0.failure == nil } }
    for probe in silent { context.say("no endpoint of \(probe.host) answered") }
    return silent.isEmpty ? .ok : .failed
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
        "\(host) is not in the list" + (meant == nil ? ", which has \(hint)" : "; did you mean \(hint)?"))
    }
  }
}
