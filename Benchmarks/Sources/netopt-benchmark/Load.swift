import NetOpt

/// Requests that are performed by so many tasks, one after the other in each.
struct Load {
  let client: NetOptClient
  /// What each task asks for in turn.
  let requests: [HTTPRequest]
  let count: Int
  let streams: Int
  /// Whether the tasks run on the client's loop instead of the default pool.
  let usesLoop: Bool
  /// Whether the time of each request is kept.
  var keepsLatencies = true

  struct Outcome: Sendable {
    var failed = 0
    var latencies: [Int64] = []

    mutating func add(_ other: Outcome) {
      failed += other.failed
      latencies += other.latencies
    }
  }

  func perform() async -> Outcome {
    await withTaskGroup(of: Outcome.self) { group in
      for stream in 0..<streams {
        let share = count / streams + (stream < count % streams ? 1 : 0)
        group.addTask(executorPreference: usesLoop ? client.loopExecutor : nil) {
          await Self.perform(share, requests, from: stream, client, keepsLatencies)
        }
      }
      return await group.reduce(into: Outcome()) { $0.add($1) }
    }
  }

  private static func perform(
    _ count: Int, _ requests: [HTTPRequest], from first: Int, _ client: NetOptClient, _ keepsLatencies: Bool
  ) async -> Outcome {
    var outcome = Outcome()
    if keepsLatencies { outcome.latencies.reserveCapacity(count) }
    let clock = SystemTimeSource()
    for index in 0..<count {
      let start = clock.now()
      let request = requests.count == 1 ? requests[0] : requests[(first + index * 31) % requests.count]
      if await !succeeds(request, client) { outcome.failed += 1 }
      if keepsLatencies { outcome.latencies.append((clock.now() - start).microseconds) }
    }
    return outcome
  }

  /// Performs one request and reads its body.
  static func succeeds(_ request: HTTPRequest, _ client: NetOptClient) async -> Bool {
    do throws(NetOptError) {
      let response = try await client.execute(request)
      // Chunk by chunk: the floor does not keep the body either.
      var length = 0
      for try await chunk in response.body { length += chunk.count }
      return response.status < 400 && length >= 0
    } catch {
      return false
    }
  }
}

extension Load.Outcome {
  /// The line that all programs print, with what lies between two costs.
  func line(from before: Cost, to after: Cost) -> String {
    let sorted = latencies.sorted()
    func percentile(_ part: Double) -> Int64 {
      sorted.isEmpty ? 0 : sorted[min(sorted.count - 1, Int(part * Double(sorted.count)))]
    }
    return """
      {"requests":\(latencies.count),"failed":\(failed),"wall_s":\(after.wallSeconds - before.wallSeconds),\
      "cpu_user_s":\(after.userSeconds - before.userSeconds),"cpu_sys_s":\(after.systemSeconds - before.systemSeconds),\
      "max_rss_kib":\(after.maxResidentKiB),"p50_us":\(percentile(0.5)),"p99_us":\(percentile(0.99))}
      """
  }
}
