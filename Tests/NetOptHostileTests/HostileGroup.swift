/// Runs the cases of one topic, such as `FieldCases`.
enum HostileGroup {
  /// The number of runs at the same time. It may exceed the number of processors, because most runs only wait
  /// for a deadline or for the server.
  private static let width = 6

  /// Runs each case in the modes that `Selection` chooses: normally in one mode. A run is one case in one
  /// mode.
  ///
  /// The cases without a flood run first, up to `width` at the same time. The floods run after them, one at a
  /// time. A flood is a case in which the server sends very much (`HostileCase.isFlood`). Its run measures
  /// how much the memory of the process grows, so no other run may take memory or processor time.
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
