/// The heap of the process, for a store that returns freed memory to the system. A program decides whether to
/// pass its heap to a store, because returning memory delays all its threads. A store without a heap returns
/// nothing.
package protocol ProcessHeap: Sendable {
  /// The size of a memory page in bytes. Only whole pages can be returned.
  var page: Int { get }

  /// Returns the free pages of the heap to the system. The call may take milliseconds.
  func trim() -> HeapTrimResult
}

/// The result of `ProcessHeap.trim`.
package struct HeapTrimResult: Sendable {
  /// By how many bytes the resident memory of the process decreased during the call; `nil` when unknown.
  var returned: Int?
  /// The number of free bytes in the heap after the call, resident or not.
  var free: Int

  package init(returned: Int?, free: Int) {
    self.returned = returned
    self.free = free
  }
}
