import NetOptCore

/// A queue of future events, ordered by their time on the virtual clock: a binary heap. Events of the same
/// time are taken in the order in which they were added, so that the seed determines the run.
struct EventQueue<Event> {
  /// The events as a binary heap: no event comes before its parent. `number` is the number of events that
  /// were added earlier.
  private var heap: [(at: MonotonicInstant, number: Int, event: Event)] = []
  /// The number of events that were ever added.
  private var added = 0

  mutating func add(_ event: Event, at moment: MonotonicInstant) {
    heap.append((moment, added, event))
    added += 1
    var child = heap.count - 1
    while child > 0, isBefore(child, (child - 1) / 2) {
      heap.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  /// Removes the earliest event and returns it; returns `nil` when the queue is empty.
  mutating func next() -> (at: MonotonicInstant, event: Event)? {
    guard let first = heap.first else { return nil }
    let last = heap.removeLast()
    guard !heap.isEmpty else { return (first.at, first.event) }
    heap[0] = last
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && isBefore(child, least) {
        least = child
      }
      if least == parent { return (first.at, first.event) }
      heap.swapAt(parent, least)
      parent = least
    }
  }

  /// Whether the event at index `a` of the heap comes before the event at index `b`.
  private func isBefore(_ a: Int, _ b: Int) -> Bool {
    (heap[a].at, heap[a].number) < (heap[b].at, heap[b].number)
  }
}
