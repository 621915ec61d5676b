import CHeap
import Glibc
package import NetOptCaching

/// The heap of glibc, from which the whole process allocates. A long-running command passes it to its cache,
/// so that the cache can give freed memory back to the system.
package struct SystemHeap: ProcessHeap {
  /// The size of a memory page in bytes.
  package let page = sysconf(Int32(_SC_PAGESIZE))

  package init() {}

  /// Gives the free pages of the heap back to the system (malloc_trim(3)). The call takes about 1 ms for 64
  /// MiB of free memory. It locks one arena of the heap after the other. A thread that allocates from a
  /// locked arena waits.
  package func trim() -> HeapTrimResult {
    let before = resident()
    malloc_trim(0)
    let after = resident()
    return HeapTrimResult(
      returned: before.flatMap { before in after.map { before - $0 } }, free: netopt_heap_free())
  }

  /// Returns the resident memory of the process in bytes (proc(5), statm); `nil` when it cannot be read.
  private func resident() -> Int? {
    let descriptor = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 128)
    let count = read(descriptor, &bytes, bytes.count)
    let fields = bytes.prefix(max(count, 0)).split(separator: 0x20)
    return fields.count > 1 ? Int(String(decoding: fields[1], as: UTF8.self)).map { $0 * page } : nil
  }
}
