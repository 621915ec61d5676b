import NetOpt

/// Requests over many hosts of a list: what each costs must not depend on how long the list is.
enum HostsBenchmark {
  static let options = ["--cacert", "--port", "--hosts", "--addresses", "--used", "-n", "-c", "--expect"]

  static func run(_ options: Options) async throws -> String {
    guard let port = UInt16(try options.required("--port")) else { throw UsageError("--port wants a port") }
    let hosts = try options.count("--hosts", 1000)
    let addresses = try options.count("--addresses", 10)
    let used = min(hosts, try options.count("--used", 1000))

    // The origin is at every address of loopback. Hosts share none: libcurl looks at all idle connections to an address before
    // it takes one, and what one host learns of an address counts for the others.
    func entry(_ host: Int) -> HostEntry {
      let endpoints = (0..<addresses).map { index in
        ListedEndpoint(
          IPAddress(v4: 0x7f40_0001 + UInt32(host * addresses + index)), weight: index == 0 ? 100 : 1)
      }
      return HostEntry(port: port, endpoints: endpoints)
    }
    let names = (0..<hosts).map { "h\($0).bench.example" }
    var configuration = try ClientConfiguration.measured(options)
    configuration.list = .list(
      EndpointList(hosts: Dictionary(uniqueKeysWithValues: names.indices.map { (names[$0], entry($0)) })))
    configuration.probing.atStart = false
    // Each host keeps its connection: what is measured is the way to it.
    configuration.connections.total = used + 16
    configuration.connections.idle = used + 16

    let client = try NetOptClient(configuration)
    let expectation = try Expectation(options.text("--expect"))
    let questions = try names.prefix(used).enumerated().map { number, name in
      let request = try NetOptRequest(.get, "https://\(name):\(port)/small")
      return if case .anything = expectation {
        try Question(request, number: nil)
      } else {
        try Question(request, number: number)
      }
    }
    for question in questions { try await Load.expectAnswer(question, client, expectation) }
    let load = Load(
      client: client, questions: questions, count: try options.count("-n", 20_000),
      streams: try options.count("-c", 100), usesLoop: true, expectation: expectation)
    let before = Cost.now
    let outcome = await load.perform()
    let after = Cost.now
    await client.shutdown()
    return outcome.line(from: before, to: after)
  }
}
