/// The heap of the process. It belongs to the program, not to a library: a store that is given one asks it to return freed pages, and a
/// store without one leaves the heap alone.
package protocol ProcessHeap: Sendable {
  /// The bytes of a page, the least that is given back.
  var page: Int { get }

  /// Gives whole pages that nothing is in back to the system. It may take milliseconds.
  func giveBack() -> GivenBackHeap
}

/// What came of giving freed memory back.
package struct GivenBackHeap: Sendable {
  /// By how many bytes the process's resident memory has shrunk; `nil` when that cannot be known.
  var returned: Int?
  /// How many bytes of its heap are free, resident or not.
  var free: Int

  package init(returned: Int?, free: Int) {
    self.returned = returned
    self.free = free
  }
}
