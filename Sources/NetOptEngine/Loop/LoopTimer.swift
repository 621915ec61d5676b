import NetOptCore

/// A timer of an `EventLoop`. A subclass overrides `fire`. An object that needs one timer can itself be a
/// subclass. Confined to the loop's thread once it is scheduled.
///
/// The class is `open` only because of a fault of the compiler (6.3.1): if the class is `package`, the
/// compiler reports an endless recursion in the initialisers of its subclasses.
open class LoopTimer {
  /// The timer's index in the heap of the queue, or -1 when it is not scheduled. Unchecked exclusivity for
  /// speed, because it is a plain number (docs/adr/0009).
  @exclusivity(unchecked) final var position = -1

  /// Makes a timer that is not scheduled.
  public init() {}

  /// Whether the timer is scheduled.
  package final var isScheduled: Bool { position >= 0 }

  /// Called on the loop's thread when the timer is due. The timer is no longer scheduled at this point.
  open func fire() { preconditionFailure("a timer says what happens when it fires") }
}

/// A queue of timers by due time: a binary heap. Each timer stores its index in the heap, so that cancelling
/// a timer costs O(log n) and leaves nothing behind. Nearly every call cancels the timer of its deadline.
struct TimerQueue {
  /// A scheduled timer. The due time is beside the timer and not in it, so that comparing due times does not
  /// touch the timers.
  private struct Entry {
    let due: MonotonicInstant
    let timer: LoopTimer
  }

  /// The timers. None is due earlier than its parent, which is at index `(index - 1) / 2`.
  private var heap: [Entry] = []

  var isEmpty: Bool { heap.isEmpty }
  var nextDue: MonotonicInstant? { heap.first?.due }

  /// When a timer is due; `nil` if it is not scheduled.
  func due(of timer: LoopTimer) -> MonotonicInstant? { timer.position < 0 ? nil : heap[timer.position].due }

  /// Schedules a timer, or moves a scheduled timer to another time.
  mutating func insert(_ timer: LoopTimer, due: MonotonicInstant) {
    let position = timer.position
    if position >= 0 {
      heap[position] = Entry(due: due, timer: timer)
      siftDown(siftUp(position))
      return
    }
    timer.position = heap.count
    heap.append(Entry(due: due, timer: timer))
    siftUp(heap.count - 1)
  }

  /// Removes a timer from the queue. Does nothing if the timer is not scheduled.
  mutating func remove(_ timer: LoopTimer) {
    let position = timer.position
    guard position >= 0 else { return }
    timer.position = -1
    let last = heap.removeLast()
    guard position < heap.count else { return }
    heap[position] = last
    last.timer.position = position
    siftDown(siftUp(position))
  }

  /// Removes and returns the timer that is due first; `nil` if none is due.
  mutating func popDue(at now: MonotonicInstant) -> LoopTimer? {
    guard let first = heap.first, first.due <= now else { return nil }
    remove(first.timer)
    return first.timer
  }

  /// Removes and returns all timers.
  mutating func removeAll() -> [LoopTimer] {
    defer { heap = [] }
    for entry in heap { entry.timer.position = -1 }
    return heap.map(\.timer)
  }

  /// Moves the timer at an index towards the root until its parent is not due later.
  ///
  /// - Returns: the index of the timer then.
  @discardableResult
  private mutating func siftUp(_ start: Int) -> Int {
    var child = start
    while child > 0, case let parent = (child - 1) / 2, heap[child].due < heap[parent].due {
      swap(child, parent)
      child = parent
    }
    return child
  }

  /// Moves the timer at an index away from the root until no child is due earlier.
  private mutating func siftDown(_ start: Int) {
    var parent = start
    while true {
      var child = 2 * parent + 1
      guard child < heap.count else { return }
      if child + 1 < heap.count, heap[child + 1].due < heap[child].due { child += 1 }
      guard heap[child].due < heap[parent].due else { return }
      swap(child, parent)
      parent = child
    }
  }

  private mutating func swap(_ a: Int, _ b: Int) {
    heap.swapAt(a, b)
    heap[a].timer.position = a
    heap[b].timer.position = b
  }
}
