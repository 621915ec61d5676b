/// The heap of the process. The heap belongs to the program, not to a library. A store with a heap asks it to
/// return freed pages to the system; a store without one leaves the heap alone.
package protocol ProcessHeap: Sendable {
  /// The size of a page in bytes, the smallest unit that can be returned.
  var page: Int { get }

  /// Returns whole free pages to the system. It may take milliseconds.
  func trim() -> HeapTrimResult
}

/// The result of returning freed memory to the system.
package struct HeapTrimResult: Sendable {
  /// The decrease of the process's resident memory in bytes; `nil` when it is unknown.
  var returned: Int?
  /// The number of free bytes in the heap of the process, resident or not.
  var free: Int

  package init(returned: Int?, free: Int) {
    self.returned = returned
    self.free = free
  }
}
