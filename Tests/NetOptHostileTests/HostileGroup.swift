/// The runs of a group of cases.
enum HostileGroup {
  /// How many run at the same time. Most of them wait: for a deadline, for a peer.
  private static let width = 6

  /// Performs those that are chosen. Floods run alone: the process's memory is theirs then, and so are the processors.
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
