import NetOpt

/// Performs requests, so many at once as there are streams, and says what they cost: CPU and time from the first request to
/// the last. One observer that reads every event is attached.
struct RequestsBenchmark {
  private var url = ""
  private var caFile: String?
  private var connectTo: String?
  private var requests = 10_000
  private var streams = 100
  private var usesLoop = true

  init(_ arguments: [String]) throws {
    var rest = arguments[...]
    while let option = rest.popFirst() {
      guard let value = rest.popFirst() else { throw UsageError("\(option) wants a value") }
      switch option {
      case "--url": url = value
      case "--cacert": caFile = value
      case "--connect-to": connectTo = value
      case "-n": requests = try Self.count(value, option)
      case "-c": streams = try Self.count(value, option)
      case "--executor" where ["loop", "pool"].contains(value): usesLoop = value == "loop"
      default: throw UsageError("\(option) \(value) is not understood")
      }
    }
    if url.isEmpty { throw UsageError("--url is missing") }
  }

  private static func count(_ text: String, _ option: String) throws -> Int {
    guard let number = Int(text), number > 0 else { throw UsageError("\(option) wants a number above 0") }
    return number
  }

  /// The line of JSON.
  func run() async throws -> String {
    let request = try HTTPRequest(.get, url)
    let client = try NetOptClient(try configuration())
    let first = try await client.execute(request)
    _ = try await first.body.collect(upTo: 1 << 30)
    let before = Cost.now
    let outcomes = await withTaskGroup(of: Outcome.self) { group in
      for stream in 0..<streams {
        let share = requests / streams + (stream < requests % streams ? 1 : 0)
        group.addTask(executorPreference: usesLoop ? client.loopExecutor : nil) {
          await Self.perform(share, request, client)
        }
      }
      return await group.reduce(into: Outcome()) { $0.add($1) }
    }
    let after = Cost.now
    await client.shutdown()
    let latencies = outcomes.latencies.sorted()
    func percentile(_ part: Double) -> Int64 {
      latencies.isEmpty ? 0 : latencies[min(latencies.count - 1, Int(part * Double(latencies.count)))]
    }
    return """
      {"requests":\(requests),"failed":\(outcomes.failed),"wall_s":\(after.wallSeconds - before.wallSeconds),\
      "cpu_user_s":\(after.userSeconds - before.userSeconds),"cpu_sys_s":\(after.systemSeconds - before.systemSeconds),\
      "max_rss_kib":\(after.maxResidentKiB),"p50_us":\(percentile(0.5)),"p99_us":\(percentile(0.99))}
      """
  }

  private func configuration() throws -> ClientConfiguration {
    var configuration = ClientConfiguration()
    configuration.list = .none
    configuration.proxy = .none
    configuration.tls.caFile = caFile
    configuration.observers = [Reader()]
    guard let connectTo else { return configuration }
    let parts = connectTo.split(separator: ":", maxSplits: 2)
    guard parts.count == 3, let port = UInt16(parts[1]), parts[2].hasSuffix(":\(port)"),
      let address = IPAddress(parts[2].dropLast(":\(port)".count).filter { $0 != "[" && $0 != "]" })
    else { throw UsageError("--connect-to wants HOST:PORT:IP:PORT, with one port") }
    let entry = HostEntry(port: port, endpoints: [ListedEndpoint(address)])
    configuration.list = .list(EndpointList(hosts: [String(parts[0]): entry]))
    return configuration
  }

  private struct Outcome: Sendable {
    var failed = 0
    var latencies: [Int64] = []

    mutating func add(_ other: Outcome) {
      failed += other.failed
      latencies += other.latencies
    }
  }

  private static func perform(_ count: Int, _ request: HTTPRequest, _ client: NetOptClient) async -> Outcome {
    var outcome = Outcome()
    outcome.latencies.reserveCapacity(count)
    let clock = SystemTimeSource()
    for _ in 0..<count {
      let start = clock.now()
      do {
        let response = try await client.execute(request)
        _ = try await response.body.collect(upTo: 1 << 30)
        if response.status >= 400 { outcome.failed += 1 }
      } catch {
        outcome.failed += 1
      }
      outcome.latencies.append((clock.now() - start).microseconds)
    }
    return outcome
  }
}

/// Reads every event.
private struct Reader: CallObserver {
  func callDidReceiveHead(_ id: UInt64, _ response: HTTPResponse) {
    precondition(response.status > 0 && !response.route.legs.isEmpty)
  }

  func callDidFinish(_ id: UInt64, _ timings: Timings) { precondition(timings.total > .zero) }
}
