import NetOpt

/// Performs requests, so many at once as there are streams, and says what they cost: CPU and time from the first request to
/// the last. One observer that reads every event is attached.
enum RequestsBenchmark {
  static let options = [
    "--url", "--cacert", "--connect-to", "--list", "--probes", "-n", "-c", "--executor", "--cold",
  ]

  static func run(_ options: Options) async throws -> String {
    var request = try HTTPRequest(.get, try options.required("--url"))
    // With the client's empty User-Agent this makes it the request of the floor, byte for byte.
    request.options.decompress = false
    let count = try options.count("-n", 10_000)
    let configuration = try ClientConfiguration.measured(options)
    if try options.choice("--cold", false) { return try await runCold(request, count, configuration) }

    let client = try NetOptClient(configuration)
    guard await Load.succeeds(request, client) else { throw UsageError("\(request.url) does not answer") }
    let load = Load(
      client: client, requests: [request], count: count, streams: try options.count("-c", 100),
      usesLoop: try options.choice("--executor", true, yes: "loop", no: "pool"))
    let before = Cost.now
    let outcome = await load.perform()
    let after = Cost.now
    await client.shutdown()
    return outcome.line(from: before, to: after)
  }

  /// Each request on a new client, from its making to the body's end.
  private static func runCold(
    _ request: HTTPRequest, _ count: Int, _ configuration: ClientConfiguration
  ) async throws -> String {
    var outcome = Load.Outcome()
    let clock = SystemTimeSource()
    let before = Cost.now
    for _ in 0..<count {
      let start = clock.now()
      let client = try NetOptClient(configuration)
      if await !Load.succeeds(request, client) { outcome.failed += 1 }
      outcome.latencies.append((clock.now() - start).microseconds)
      await client.shutdown()
    }
    return outcome.line(from: before, to: Cost.now)
  }
}
