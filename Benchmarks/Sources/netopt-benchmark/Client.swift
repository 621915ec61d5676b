import NetOpt

/// Reads every event: part of what is measured.
struct Reader: CallObserver {
  func callDidReceiveHead(_ id: UInt64, _ response: NetOptResponse) {
    precondition(response.status > 0 && !response.route.legs.isEmpty)
  }

  func callDidFinish(_ id: UInt64, _ timings: Timings) { precondition(timings.total > .zero) }
}

extension ClientConfiguration {
  /// The configuration that all measurements share.
  static func measured(_ options: Options) throws -> ClientConfiguration {
    var configuration = ClientConfiguration()
    // The floor sends none.
    configuration.userAgent = ""
    configuration.list = .none
    configuration.rankingHistory = .none
    configuration.allowPrivateAddresses = true
    configuration.proxy = .none
    configuration.tls.caFile = options.text("--cacert")
    configuration.observers = [Reader()]
    configuration.probing.atStart = try options.choice("--probes", true)
    if let file = options.text("--list") { configuration.list = .file(file) }
    if let text = options.text("--connect-to") { configuration.list = .list(try list(connectingTo: text)) }
    return configuration
  }

  /// A list of one endpoint, from libcurl's HOST:PORT:IP:PORT.
  private static func list(connectingTo text: String) throws -> EndpointList {
    let parts = text.split(separator: ":", maxSplits: 2)
    guard parts.count == 3, let port = UInt16(parts[1]), parts[2].hasSuffix(":\(port)"),
      let address = IPAddress(parts[2].dropLast(":\(port)".count).filter { $0 != "[" && $0 != "]" })
    else { throw UsageError("--connect-to wants HOST:PORT:IP:PORT, with one port") }
    let entry = HostEntry(port: port, endpoints: [ListedEndpoint(address)])
    return EndpointList(hosts: [String(parts[0]): entry])
  }
}
