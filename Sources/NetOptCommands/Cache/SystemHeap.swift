import CHeap
import Glibc
package import NetOptCaching

/// The heap of glibc. The program passes the heap to the cache of a long-running process.
package struct SystemHeap: ProcessHeap {
  package let page = sysconf(Int32(_SC_PAGESIZE))

  package init() {}

  /// Returns whole free pages to the system (malloc_trim(3)). The call takes in the order of 1 ms for 64 MiB
  /// of free memory in the process. A thread that allocates from the arena being trimmed waits for the call.
  package func trim() -> HeapTrimResult {
    let before = resident()
    malloc_trim(0)
    let after = resident()
    return HeapTrimResult(
      returned: before.flatMap { before in after.map { before - $0 } }, free: netopt_heap_free())
  }

  /// Returns the resident memory in bytes (proc(5), statm); `nil` when the size cannot be read.
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
