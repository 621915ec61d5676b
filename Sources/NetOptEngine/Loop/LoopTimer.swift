package import NetOptCore

/// A timer of an `EventLoop`. Subclass it to say what happens when it fires; an object that needs one timer can be
/// one. Confined to the loop's thread once it is scheduled.
///
/// It is open only because the compiler (6.3.1) takes the initialisers of subclasses of a package class for an endless recursion.
open class LoopTimer {
  /// When it fires, while it is scheduled. Unchecked exclusivity, also of its place: plain numbers (docs/adr/0009).
  @exclusivity(unchecked) package internal(set) final var due = MonotonicInstant(nanoseconds: .max)
  /// Its place in the queue, or -1.
  @exclusivity(unchecked) final var position = -1

  /// Makes a timer that is not scheduled.
  public init() {}

  /// Whether it will fire.
  package final var isScheduled: Bool { position >= 0 }

  /// Called on the loop's thread when the time has come; the timer is no longer scheduled then.
  open func fire() { preconditionFailure("a timer says what happens when it fires") }
}

/// Timers by the moment they are due: a binary heap in which each timer knows its place, so that cancelling one
/// costs O(log n) and leaves nothing behind. Nearly every call's deadline is cancelled.
struct TimerQueue {
  private var heap: [LoopTimer] = []

  var isEmpty: Bool { heap.isEmpty }
  var nextDue: MonotonicInstant? { heap.first?.due }

  mutating func insert(_ timer: LoopTimer, due: MonotonicInstant) {
    if timer.position >= 0 {
      timer.due = due
      let position = timer.position
      siftUp(position)
      siftDown(timer.position)
      return
    }
    timer.due = due
    timer.position = heap.count
    heap.append(timer)
    siftUp(heap.count - 1)
  }

  mutating func remove(_ timer: LoopTimer) {
    let position = timer.position
    guard position >= 0 else { return }
    timer.position = -1
    let last = heap.removeLast()
    guard last !== timer else { return }
    heap[position] = last
    last.position = position
    siftUp(position)
    siftDown(last.position)
  }

  mutating func popDue(at now: MonotonicInstant) -> LoopTimer? {
    guard let first = heap.first, first.due <= now else { return nil }
    remove(first)
    return first
  }

  /// Takes all timers out of the queue.
  mutating func removeAll() -> [LoopTimer] {
    defer { heap = [] }
    for timer in heap { timer.position = -1 }
    return heap
  }

  private mutating func siftUp(_ start: Int) {
    var child = start
    // The usual case: a deadline is later than what is scheduled already.
    guard child > 0, heap[child].due < heap[(child - 1) / 2].due else { return }
    let timer = heap[child]
    while child > 0 {
      let parent = (child - 1) / 2
      guard timer.due < heap[parent].due else { break }
      place(heap[parent], at: child)
      child = parent
    }
    place(timer, at: child)
  }

  private mutating func siftDown(_ start: Int) {
    var parent = start
    let timer = heap[parent]
    while true {
      var child = 2 * parent + 1
      guard child < heap.count else { break }
      if child + 1 < heap.count, heap[child + 1].due < heap[child].due { child += 1 }
      guard heap[child].due < timer.due else { break }
      place(heap[child], at: parent)
      parent = child
    }
    place(timer, at: parent)
  }

  private mutating func place(_ timer: LoopTimer, at position: Int) {
    heap[position] = timer
    timer.position = position
  }
}
