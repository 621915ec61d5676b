import NetOpt
import NetOptCore

/// The report of one round of `netopt probe`.
struct ProbeReport: Sendable {
  /// The results, one for each host.
  private let probes: [HostProbe]

  /// Creates the report.
  init(_ probes: [HostProbe]) { self.probes = probes }

  /// Returns the object that `probe --json` prints: docs/schemas/probe.schema.json.
  ///
  /// - Parameter network: the default route of this machine as text; `nil` if there is none. It tells the
  ///   reader in which network the measurements were made.
  func json(network: String?) -> JSONValue {
    ["schema_version": 1, "network": .optional(network), "hosts": .array(probes.map(json))]
  }

  private func json(_ probe: HostProbe) -> JSONValue {
    [
      "host": .string(probe.host), "port": .integer(Int64(probe.port)),
      "method": .string(probe.method.rawValue),
      "endpoints": .array(probe.endpoints.map(json)),
    ]
  }

  private func json(_ endpoint: EndpointProbe) -> JSONValue {
    var json: JSONValue = [
      "ip": .string(endpoint.address.description), "rank": .optional(endpoint.rank),
      "rtt_us": .microseconds(endpoint.rtt),
      "samples_us": .array(endpoint.samples.map(JSONValue.microseconds)),
      "state": .string(endpoint.state.rawValue), "chosen": .bool(endpoint.chosen),
    ]
    if let failure = endpoint.failure { json.append("error", .string(failure.message)) }
    return json
  }

  /// The report as text: a table for each host.
  var text: String {
    Text.lines(Array(probes.map(table).joined(separator: [""])))
  }

  private func table(_ probe: HostProbe) -> [String] {
    let width = max(probe.endpoints.map(\.address.description.count).max() ?? 0, "ENDPOINT".count)
    let locations = probe.endpoints.map { [$0.region, $0.isp].compactMap(\.self).joined(separator: " ") }
    let locationWidth = max(locations.map(\.count).max() ?? 0, "PLACE".count)
    let heading =
      "  #  " + Text.left("ENDPOINT", width) + Text.right("RTT", 11) + "  "
      + Text.left("STATE", 11) + "  " + Text.left("PLACE", locationWidth) + "  SAMPLES ms"
    let rows = zip(probe.endpoints, locations).map { endpoint, location in
      (endpoint.chosen ? "*" : " ") + Text.right(endpoint.rank.map(String.init) ?? "!", 2) + "  "
        + Text.left(endpoint.address.description, width)
        + Text.right(endpoint.rtt.map(Text.time) ?? "-", 11) + "  "
        + Text.left(endpoint.state.rawValue, 11) + "  "
        + Text.left(Text.printable(location), locationWidth) + "  "
        + (endpoint.failure.map { Text.printable($0.message) }
          ?? endpoint.samples.map(Text.milliseconds).joined(separator: " "))
    }
    return ["\(probe.host):\(probe.port)  \(probe.method.rawValue)", heading] + rows
  }
}
