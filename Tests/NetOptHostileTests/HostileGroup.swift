/// Runs a group of cases.
enum HostileGroup {
  /// The number of concurrent runs. Most runs wait for a deadline or a peer.
  private static let width = 6

  /// Performs the selected runs. Each flood runs alone, so that the process's memory and the processors
  /// belong to it.
  static func perform(_ cases: [HostileCase]) async throws {
    var runs = Selection.runs(of: cases.filter { !$0.isFlood })[...]
    try await withThrowingTaskGroup(of: Void.self) { group in
      var running = 0
      while !runs.isEmpty || running > 0 {
        if running < width, let (hostile, mode) = runs.popFirst() {
          group.addTask { try await HostileRun(hostile, mode).perform() }
          running += 1
        } else {
          try await group.next()
          running -= 1
        }
      }
    }
    for (hostile, mode) in Selection.runs(of: cases.filter(\.isFlood)) {
      try await HostileRun(hostile, mode).perform()
    }
  }
}
