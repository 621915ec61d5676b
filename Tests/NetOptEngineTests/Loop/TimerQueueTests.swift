import NetOptCore
import Testing

@testable import NetOptEngine

/// Tests the queue of the event loop's timers, which returns due timers in the order of their times.
@Suite struct TimerQueueTests {
  @Test func emptyQueueHasNothingDue() {
    var queue = TimerQueue()
    #expect(queue.isEmpty)
    #expect(queue.nextDue == nil)
    #expect(queue.popDue(at: moment(.max)) == nil)
  }

  @Test("the queue pops only due timers, in the order of their times")
  func popsInOrder() {
    var queue = TimerQueue()
    let timers = [30, 10, 20].map { (due: Int64) in
      let timer = LoopTimer()
      queue.insert(timer, due: moment(due))
      return timer
    }
    #expect(queue.nextDue == moment(10))
    #expect(queue.popDue(at: moment(9)) == nil)
    #expect(queue.popDue(at: moment(20)) === timers[1])
    #expect(queue.popDue(at: moment(20)) === timers[2])
    #expect(queue.popDue(at: moment(20)) == nil)
    #expect(timers.map(\.isScheduled) == [true, false, false])
  }

  @Test("inserting a timer again moves it to the new time")
  func reinsertion() {
    var queue = TimerQueue()
    let (first, second) = (LoopTimer(), LoopTimer())
    queue.insert(first, due: moment(10))
    queue.insert(second, due: moment(20))
    queue.insert(first, due: moment(30))
    #expect(queue.popDue(at: moment(40)) === second)
    #expect(queue.popDue(at: moment(40)) === first)
    #expect(queue.isEmpty)
  }

  @Test("removing a timer that is not in the queue does nothing")
  func removesTwice() {
    var queue = TimerQueue()
    let timer = LoopTimer()
    queue.remove(timer)
    queue.insert(timer, due: moment(1))
    queue.remove(timer)
    queue.remove(timer)
    #expect(queue.isEmpty)
    #expect(!timer.isScheduled)
  }

  @Test("removing all timers returns and unschedules them")
  func removesAll() {
    var queue = TimerQueue()
    let timers = (0..<10).map { _ in LoopTimer() }
    for timer in timers { queue.insert(timer, due: moment(5)) }
    #expect(queue.removeAll().count == 10)
    #expect(queue.isEmpty)
    #expect(timers.allSatisfy { !$0.isScheduled })
  }

  /// Applies random operations to the queue and to a simple model: a dictionary that is searched linearly.
  @Test(
    "the queue behaves like a simple model under random operations", arguments: [1, 2, 3, 4, 5] as [UInt64])
  func matchesModel(seed: UInt64) {
    var random = SplitMix64(state: seed)
    var queue = TimerQueue()
    let timers = (0..<64).map { _ in LoopTimer() }
    // The due time of each scheduled timer in nanoseconds, by the index of the timer.
    var model: [Int: Int64] = [:]
    for _ in 0..<20_000 {
      let index = Int.random(in: 0..<64, using: &random)
      switch Int.random(in: 0..<4, using: &random) {
      case 0, 1:
        // There are only 40 different times, so that many timers are due at the same time.
        let due = Int64.random(in: 0..<40, using: &random)
        queue.insert(timers[index], due: moment(due))
        model[index] = due
      case 2:
        queue.remove(timers[index])
        model[index] = nil
      default:
        let now = Int64.random(in: 0..<40, using: &random)
        let popped = queue.popDue(at: moment(now))
        let earliest = model.values.min().flatMap { $0 <= now ? $0 : nil }
        #expect((popped == nil) == (earliest == nil))
        if let popped, let index = timers.firstIndex(where: { $0 === popped }) {
          #expect(model.removeValue(forKey: index) == earliest)
        }
      }
      #expect(queue.nextDue?.nanoseconds == model.values.min())
      #expect(timers[index].isScheduled == (model[index] != nil))
      #expect(queue.due(of: timers[index])?.nanoseconds == model[index])
    }
  }

  /// The moment this many nanoseconds after the zero of the monotonic clock.
  private func moment(_ nanoseconds: Int64) -> MonotonicInstant { MonotonicInstant(nanoseconds: nanoseconds) }
}

/// A random number generator (SplitMix64; Steele, Lea and Flood, 2014) with a seed, so that the tests are
/// repeatable.
private struct SplitMix64: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }
}
