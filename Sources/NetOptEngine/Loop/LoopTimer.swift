package import NetOptCore

/// A timer of an `EventLoop`. A subclass overrides `fire`. An object that needs one timer can itself be a
/// subclass. Confined to the loop's thread once it is scheduled.
///
/// The class is `open` only because of a fault of the compiler (6.3.1): if the class is `package`, the
/// compiler reports an endless recursion in the initialisers of its subclasses.
open class LoopTimer {
  /// The time at which the timer fires. Has a meaning only while the timer is scheduled. The exclusivity of
  /// `due` and `position` is unchecked for speed, because they are plain numbers (docs/adr/0009).
  @exclusivity(unchecked) package internal(set) final var due = MonotonicInstant(nanoseconds: .max)
  /// The timer's index in the heap of the queue, or -1 when it is not scheduled.
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
  /// The timers. None is due earlier than its parent, which is at index `(index - 1) / 2`.
  private var heap: [LoopTimer] = []

  var isEmpty: Bool { heap.isEmpty }
  var nextDue: MonotonicInstant? { heap.first?.due }

  /// Schedules a timer, or moves a scheduled timer to another time.
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

  /// Removes a timer from the queue. Does nothing if the timer is not scheduled.
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

  /// Removes and returns the timer that is due first; `nil` if none is due.
  mutating func popDue(at now: MonotonicInstant) -> LoopTimer? {
    guard let first = heap.first, first.due <= now else { return nil }
    remove(first)
    return first
  }

  /// Removes and returns all timers.
  mutating func removeAll() -> [LoopTimer] {
    defer { heap = [] }
    for timer in heap { timer.position = -1 }
    return heap
  }

  /// Moves the timer at an index towards the root until its parent is not due later.
  private mutating func siftUp(_ start: Int) {
    var child = start
    // The usual case: a new deadline is later than the timers that are already scheduled.
    guard child > 0, heap[child].due < heap[(child - 1) / 2].due else { return }
    let timer = heap[child]
    while child > 0 {
      let parent = (child - 1) / 2
      guard timer.due < heap[parent].due else { break }
      move(heap[parent], to: child)
      child = parent
    }
    move(timer, to: child)
  }

  /// Moves the timer at an index away from the root until no child is due earlier.
  private mutating func siftDown(_ start: Int) {
    var parent = start
    let timer = heap[parent]
    while true {
      var child = 2 * parent + 1
      guard child < heap.count else { break }
      if child + 1 < heap.count, heap[child + 1].due < heap[child].due { child += 1 }
      guard heap[child].due < timer.due else { break }
      move(heap[child], to: parent)
      parent = child
    }
    move(timer, to: parent)
  }

  private mutating func move(_ timer: LoopTimer, to position: Int) {
    heap[position] = timer
    timer.position = position
  }
}
