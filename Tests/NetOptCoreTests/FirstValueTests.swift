import NetOptCore
import NetOptLocking
import NetOptTestSupport
import Testing

/// Values that one task waits for.
@Suite struct FirstValueTests {
  @Test(
    "the waiting task gets the value that was set first, and the cancellation sets a value too",
    .timeLimit(.minutes(1)), arguments: 1...200 as ClosedRange<UInt64>)
  func first(seed: UInt64) async {
    var random = SplitMix64(seed: seed)
    let value = FirstValue<Int>()
    let isSetBefore = random.below(2) == 0
    if isSetBefore { value.set(0) }
    let waiting = Task { await value.value(whenCancelled: -1) }
    if random.below(2) == 0 { await Task.yield() }
    let isCancelled = random.below(2) == 0
    if isCancelled { waiting.cancel() }
    await withTaskGroup(of: Void.self) { group in
      for number in 1...4 { group.addTask { value.set(number) } }
    }
    let got = await waiting.value
    if isSetBefore {
      #expect(got == 0)
    } else {
      // A task that starts late may find a value when it finds its cancellation.
      #expect((1...4).contains(got) || isCancelled && got == -1)
    }
    // The value stays what it was first.
    value.set(9)
    #expect(await value.value(whenCancelled: 8) == got)
  }
}
