import NetOptCore
import NetOptLocking
import NetOptTestSupport
import Testing

@testable import NetOptCaching

/// Performs look-ups that return at random times. Each caller must get the result of its own look-up or
/// `nil`, within the time limit. After all look-ups have returned, new ones must work.
@Suite struct TimedLookupsTests {
  /// The look-ups that return after their callers have stopped waiting. Each closure makes one of them
  /// return.
  private final class Late: Sendable {
    let finishes = Locked<[@Sendable () -> Void]>([])
  }

  /// Performs a look-up. Its result is `number`, or -1 if it returns too late.
  ///
  /// - Parameter kind: when the look-up returns. 0: after its caller has stopped waiting, when the test calls
  ///   the closure in `late`. 1 to 4: at once. Otherwise: from another task.
  private static func ask(
    _ lookups: TimedLookups<Int>, for number: Int, kind: UInt64, late: Late
  ) async -> Int? {
    await lookups.perform(within: kind == 0 ? .zero : .seconds(60)) { found in
      switch kind {
      case 0: late.finishes.withLock { $0.append { found(-1) } }
      case 1...4: found(number)
      default: Task { found(number) }
      }
    }
  }

  @Test("each look-up returns once, with its own result or nil", arguments: UInt64(1)...20)
  func random(seed: UInt64) async {
    var random = SplitMix64(seed: seed)
    let lookups = TimedLookups<Int>()
    let late = Late()
    for round in 0..<20 {
      let kinds = (0..<30).map { _ in random.below(10) }
      let answers = await withTaskGroup(of: (Int, Int?).self) { group in
        for (number, kind) in kinds.enumerated() {
          group.addTask { (number, await Self.ask(lookups, for: number, kind: kind, late: late)) }
        }
        return await group.reduce(into: [(Int, Int?)]()) { $0.append($1) }
      }
      #expect(answers.count == kinds.count)
      for (number, found) in answers {
        // A look-up of kind 0 is overdue until its closure in `late` is called. Until then, new look-ups do
        // not begin and return `nil`.
        let isRight = kinds[number] == 0 ? found == nil : found == number || found == nil && kinds.contains(0)
        #expect(isRight, "seed \(seed), round \(round), \(number)")
      }
      if kinds.contains(0) { #expect(await lookups.perform(within: .seconds(60)) { $0(1) } == nil) }
      let finishes = late.finishes.withLock { late in
        defer { late = [] }
        return late
      }
      for finish in finishes { finish() }
      #expect(await lookups.perform(within: .seconds(60)) { $0(7) } == 7)
    }
  }
}
